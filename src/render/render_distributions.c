/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distributions for people: a table for each kind, most time first, then the buckets of the first
 * rows as bars. */
#include "report/distribution.h"
#include "render/renderer.h"
#include "base/clock.h"
#include "report/value.h"

#include <stdlib.h>

#define ROWS_ON_TERMINAL 10
#define BARS_ON_TERMINAL 3
#define BAR_WIDTH_MOST 40
#define WIDE 100	/* least width of a line for all percentiles */
#define BOUND_WIDTH 7	/* "1.05 ms" */
#define AMOUNT_WIDTH 10 /* "4294967296" */

static void add_right(struct text *line, const struct text *cell, size_t width)
{
	text_add_spaces(line, cell->length < width ? width - cell->length : 0);
	text_add_string(line, text_string(cell));
}

static void add_bound(struct text *line, int64_t ns, bool amounts)
{
	struct text cell = {0};

	if (amounts)
		text_add_number(&cell, ns >> HISTOGRAM_AMOUNT_SHIFT);
	else
		text_add_duration(&cell, ns);
	add_right(line, &cell, amounts ? AMOUNT_WIDTH : BOUND_WIDTH);
	text_done(&cell);
}

/* Adds a bucket as a line: "  16.4 us ..  32.8 us     120  ##########" */
static void add_bucket(struct text *out, const struct interval *interval,
		       const struct histogram *histogram, bool amounts, int bucket, int64_t most)
{
	const size_t bound = amounts ? AMOUNT_WIDTH : BOUND_WIDTH;
	const size_t before = 2 + bound + 4 + bound + 2 + 8 + 2;
	size_t width = BAR_WIDTH_MOST, marks;
	struct text line = {0}, cell = {0};

	if (interval->width)
		width = interval->width > before + 4 ? interval->width - before : 4;
	if (width > BAR_WIDTH_MOST)
		width = BAR_WIDTH_MOST;
	/* a bucket with any event has a mark */
	marks = (size_t)ratio(histogram->buckets[bucket], (int64_t)width, most);
	if (!marks && histogram->buckets[bucket])
		marks = 1;
	text_add_spaces(&line, 2);
	add_bound(&line, histogram_low_ns(bucket), amounts);
	if (bucket == HISTOGRAM_BUCKETS - 1) {
		text_add_string(&line, " on");
		text_add_spaces(&line, bound + 1);
	} else {
		text_add_string(&line, " .. ");
		add_bound(&line, histogram_high_ns(bucket), amounts);
	}
	text_add_number(&cell, histogram->buckets[bucket]);
	text_add_spaces(&line, 2);
	add_right(&line, &cell, 8);
	text_add_spaces(&line, marks ? 2 : 0);
	while (marks--)
		text_add_char(&line, '#');
	text_add(out, text_string(&line),
		 interval->width ? text_fit(text_string(&line), interval->width) : line.length);
	text_add_char(out, '\n');
	text_done(&line);
	text_done(&cell);
}

static void add_bars(struct text *out, const struct interval *interval,
		     const struct histogram *histogram, bool amounts)
{
	int first = HISTOGRAM_BUCKETS, last = 0;
	int64_t most = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->buckets[i])
			continue;
		first = i < first ? i : first;
		last = i;
		most = histogram->buckets[i] > most ? histogram->buckets[i] : most;
	}
	for (int i = first; i <= last; i++)
		add_bucket(out, interval, histogram, amounts, i, most);
}

/* Adds the keys of a row: "S root sleeper nanosleep:" */
static void add_name(struct text *out, const struct interval *interval, size_t row)
{
	const struct column_list *list = interval->grid->list;
	const union value *values = grid_row(interval->grid, row);
	struct text line = {0};

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i]->role != ROLE_KEY)
			continue;
		if (line.length)
			text_add_char(&line, ' ');
		if (value_is_absent(list->items[i], values[i]))
			text_add_char(&line, '-');
		else
			value_add(&line, list->items[i], values[i]);
	}
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, line.length ? text_string(&line) : "all");
	text_done(&line);
}

static void add_kind(struct text *out, const struct interval *interval,
		     struct distribution_table *distributions, const struct trace_kind *kind)
{
	const struct distribution **order;
	struct grid grid = {0};
	struct interval table = *interval;
	struct text line = {0};
	size_t count = distribution_grid_fill(
		distributions, kind, interval->width && interval->width < WIDE, &grid, &order);
	size_t rows = interval->row_limit && count > ROWS_ON_TERMINAL ? ROWS_ON_TERMINAL : count;
	size_t bars = kind->measure == TRACE_COUNT		       ? 0
		      : interval->row_limit && rows > BARS_ON_TERMINAL ? BARS_ON_TERMINAL
								       : rows;

	table.grid = &grid;
	text_add_format(&line, "%s: %s%s", kind->name, kind->help, count ? "" : ": none");
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, text_string(&line));
	if (count)
		interval_add_table(out, &table, rows);
	if (rows < count) {
		text_clear(&line);
		text_add_format(&line, "%zu more with less time", count - rows);
		interval_add_wrapped(out, interval, text_string(&line));
	}
	for (size_t row = 0; row < (kind->stacks ? rows : bars); row++) {
		add_name(out, &table, row);
		if (kind->stacks)
			interval_add_counted_stack(out, interval,
						   histogram_count(&order[row]->histogram),
						   distribution_stack(distributions, order[row]));
		if (row < bars)
			add_bars(out, interval, &order[row]->histogram,
				 kind->measure == TRACE_AMOUNT);
	}
	free(order);
	grid_done(&grid);
	text_done(&line);
}

void interval_add_distributions(struct text *out, const struct interval *interval, void *state)
{
	struct distribution_table *distributions = state;

	for (size_t i = 0; i < distributions->kind_count; i++)
		add_kind(out, interval, distributions, distributions->kinds[i]);
}

static int distributions_begin(void *state, struct report *report)
{
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	struct column_list keys = report->list;
	size_t count = 0;
	int err = 0;

	if (!report->distributions || report->renderer->kind == RENDERER_STACKS)
		return 0;
	for (size_t i = 0; i < report->kind_count; i++)
		if (!report->kinds[i]->single || report->kinds[i]->sums)
			kinds[count++] = report->kinds[i];
	/* columns of recorded rows are far too many as keys */
	if (report->record) {
		keys = (struct column_list){0};
		err = column_list_add(&keys, REPORT_COLUMNS_DEFAULT, true, report->e);
	}
	distribution_table_init(state, kinds, count, &keys);
	return err ? err : 1;
}

static int distributions_collect(void *state, struct report *report, bool all)
{
	struct distribution_table *table = state;
	struct source *source = report->source;
	int err = source->host ? source->host->traced(source, all, distribution_table_needs(table),
						      distribution_table_add, table, report->e)
			       : 0; /* a recording: recorded_distributions_part */

	report_miss(report, "events dropped: more distributions than tsnap keeps", table->refused);
	table->refused = 0;
	/* what was measured since the last report, if the user interrupts before the next scan, is
	 * as of a scan that saw no thread */
	if (!err && source->host && all && table->count && !report->tally.scans &&
	    report->scan->scan_time_ns)
		tally_add(&report->tally, &(struct scan){.time_us = clock_utc_us(),
							 .weight_us = (clock_monotonic_ns() -
								       report->scan->scan_time_ns) /
								      NS_PER_US});
	return err;
}

static void distributions_end(void *state, struct report *report)
{
	if (!report->rows_of_groups)
		distribution_rows_fill(state, &report->tally, &report->grid);
}

const struct report_part distributions_part = {.bytes = sizeof(struct distribution_table),
					       .begin = distributions_begin,
					       .collect = distributions_collect,
					       .end = distributions_end,
					       .below = interval_add_distributions,
					       .clear = distribution_table_clear,
					       .done = distribution_table_done};

struct distribution_table *distributions_of(const struct report *report)
{
	return report_state(report, &distributions_part);
}

const struct column_list *distributions_list(const struct report *report)
{
	struct distribution_table *table = report_state(report, &distributions_part);

	return table ? distribution_rows_list(table) : NULL;
}
