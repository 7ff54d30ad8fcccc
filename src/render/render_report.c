/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for people: a header line, a table with the most active groups first, and a footer
 * that says what was missed and what tsnap itself cost. */
#include "render/renderer.h"
#include "report/findings.h"
#include "report/measure.h"
#include "report/report.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

/* Bound on the difference between exact CPU times and /proc/stat: 2 % of the busy time, or 0.5 % of
 * all time if that is more, two ticks of /proc/stat on each CPU, and what the source adds.
 * Interrupts of idle CPUs belong to no thread: times that are too small are reported only if the
 * CPUs were busy for a quarter of the time. */
#define BUSY_PART 50
#define CPUS_PART 200
#define TICKS_US 20000
#define QUIET_PART 4
#define QUOTAS_SHOWN 5	       /* limit of control groups */
#define LIMIT_PERCENT_LEAST 10 /* least use of an I/O limit that is reported */
#define TAKEN_PART 100	       /* of a CPU: what interrupts take less of is no remark */
#define PRESSURE_LEAST 50      /* per mille: less pressure is no remark */
#define MEGABYTE 1000000
#define UNSEEN_PART 10 /* part of all time of a state that matters */
#define FIXED_LINES 3  /* of a report with findings: empty, legend, footer */

/* Tables ---------------------------------------------------------------------------------------
 */

/* A grid for people: titles and rows in columns that fit the width of a line. */

#define BOLD "\033[1m"
#define PLAIN "\033[0m"
#define COLOUR_BAR "\033[36m"
#define GAP 2 /* spaces between columns */
#define BAR_WIDTH 10
#define BAR_REPORT_WIDTH 80 /* least width of a line that has bars */
#define TEXT_WIDTH_LEAST 8  /* least width to which a text column is cut */
#define LONG_TEXT_LEAST 16  /* the same of a wait, chain or path, which 8 characters don't tell */
#define LONG_TEXT_WIDTH 25  /* usual width of such a column */
#define THREADS_MANY 1000   /* hundredths, from which on threads have one decimal */
#define ELLIPSIS "…"

/* Writes a share and its bar: "  4.5% #         " */
static void share_write(struct text *cell, int64_t permille, bool bar)
{
	struct text number = {0};
	size_t marks = (size_t)(permille * BAR_WIDTH + 999) / 1000; /* any share has a mark */

	text_add_decimals(&number, permille, 1);
	text_add_spaces(cell, number.length < 5 ? 5 - number.length : 0);
	text_add(cell, number.bytes, number.length);
	text_add_char(cell, '%');
	if (bar) {
		text_add_char(cell, ' ');
		for (size_t i = 0; i < BAR_WIDTH; i++)
			text_add_char(cell, i < marks ? '#' : ' ');
	}
	text_done(&number);
}

/* How the table is laid out. */
struct layout {
	const struct interval *interval;
	size_t widths[COLUMN_LIST_MAX];
	size_t columns;	      /* columns that fit into the line */
	bool bars;	      /* shares have bars */
	int threads_decimals; /* of KIND_THREADS */
};

/* True if shares have bars: the table has one column of shares, and space for bars. */
static bool has_bars(const struct interval *interval)
{
	const struct column_list *list = interval->grid->list;
	size_t shares = 0;

	for (size_t i = 0; i < list->count; i++)
		shares += list->items[i]->kind == KIND_PERMILLE;
	return shares == 1 && (!interval->width || interval->width >= BAR_REPORT_WIDTH);
}

/* Decimals of numbers of threads: one where a row has ten or more. */
static int threads_decimals(const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;

	for (size_t i = 0; i < list->count; i++)
		for (size_t row = 0; row < rows && list->items[i]->kind == KIND_THREADS; row++)
			if (grid_row(interval->grid, row)[i].number >= THREADS_MANY)
				return 1;
	return 2;
}

static void threads_write(struct text *cell, int64_t hundredths, int decimals)
{
	if (!hundredths)
		text_add_string(cell, ABSENT_TEXT);
	else
		text_add_decimals(cell, decimals == 1 ? ratio(hundredths, 1, 10) : hundredths,
				  decimals);
}

/* Writes the text of a cell, without padding. */
static void cell_write(struct text *cell, const struct layout *layout, const struct column *column,
		       union value value)
{
	text_clear(cell);
	if (value_is_absent(column, value))
		text_add_string(cell, ABSENT_TEXT);
	else if (column->kind == KIND_PERMILLE)
		share_write(cell, value.number, layout->bars);
	else if (column->kind == KIND_THREADS)
		threads_write(cell, value.number, layout->threads_decimals);
	else if (column->kind == KIND_NS)
		text_add_duration(cell, value.number);
	else
		value_add(cell, column, value);
}

void interval_add_cell(struct text *cell, const struct column *column, union value value)
{
	cell_write(cell, &(struct layout){.threads_decimals = 2}, column, value);
}

/* True for text, and for a share because of its bar. */
static bool aligned_left(const struct layout *layout, const struct column *column)
{
	return column_is_text(column) || (column->kind == KIND_PERMILLE && layout->bars);
}

/* Width that a text column keeps when others are left out instead. */
static size_t least_width(const struct column *column)
{
	if (column->role == ROLE_MEASURE)
		return (size_t)column->width;
	return column->width < LONG_TEXT_WIDTH ? TEXT_WIDTH_LEAST : LONG_TEXT_LEAST;
}

/* The widest of the columns that can be cut. */
static size_t *widest(struct layout *layout)
{
	const struct column_list *list = layout->interval->grid->list;
	size_t *found = NULL;

	for (size_t i = 0; i < layout->columns; i++)
		if (list->items[i]->kind == KIND_TEXT &&
		    layout->widths[i] > least_width(list->items[i]) &&
		    (!found || layout->widths[i] >= *found))
			found = &layout->widths[i];
	return found;
}

static size_t width_of(const struct layout *layout)
{
	size_t total = 0;

	for (size_t i = 0; i < layout->columns; i++)
		total += layout->widths[i] + (i ? GAP : 0);
	return total;
}

/* Cuts texts so that all columns fit, or leaves out the last column. */
static void columns_fit(struct layout *layout, size_t width)
{
	size_t whole[COLUMN_LIST_MAX], *cut;

	memcpy(whole, layout->widths, sizeof(whole));
	while (width_of(layout) > width) {
		cut = widest(layout);
		if (cut) {
			--*cut;
		} else if (layout->columns > 1) {
			layout->columns--;
			memcpy(layout->widths, whole, sizeof(whole));
		} else {
			break;
		}
	}
}

static void layout_find(struct layout *layout, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;
	struct text cell = {0};

	*layout = (struct layout){
		.interval = interval,
		.columns = list->count,
		.bars = has_bars(interval),
		.threads_decimals = threads_decimals(interval, rows),
	};
	for (size_t i = 0; i < list->count; i++) {
		size_t *width = &layout->widths[i];

		*width = text_width(list->items[i]->title);
		if (*width < (size_t)list->items[i]->width)
			*width = (size_t)list->items[i]->width;
		for (size_t row = 0; row < rows; row++) {
			cell_write(&cell, layout, list->items[i], grid_row(interval->grid, row)[i]);
			if (text_width(text_string(&cell)) > *width)
				*width = text_width(text_string(&cell));
		}
	}
	if (interval->width)
		columns_fit(layout, interval->width);
	text_done(&cell);
}

/* Adds the beginning and the end of a cell that does not fit: paths and commands differ in both. */
static void add_shortened(struct text *line, const char *cell, size_t width)
{
	size_t tail = (width - 1) / 2;
	const char *end = cell + text_fit(cell, text_width(cell) - tail);

	/* skip to the start of a character, and past a wide one that does not fit */
	while ((*end & 0xc0) == 0x80 || text_width(end) > tail)
		end++;
	text_add(line, cell, text_fit(cell, width - 1 - tail));
	text_add_string(line, ELLIPSIS);
	text_add_string(line, end);
}

static void add_cell(struct text *line, const char *cell, size_t width, bool left, bool last)
{
	size_t taken = text_width(cell);

	if (taken > width) {
		size_t start = line->length;

		add_shortened(line, cell, width);
		/* a wide character may be more than the space that was left */
		if (!last)
			text_add_spaces(line, width - text_width(line->bytes + start));
		return;
	}
	if (!left)
		text_add_spaces(line, width - taken);
	text_add_string(line, cell);
	if (left && !last)
		text_add_spaces(line, width - taken);
}

/* Bytes of a line that are shown in colour. */
struct colour_span {
	size_t from, to;
	const char *colour;
};

/* Colour of a thread state; NULL: none. */
static const char *state_colour(int64_t state)
{
	static const char *const colours[STATE_COUNT] = {
		[STATE_ON] = "\033[32m",    /* green */
		[STATE_RQ] = "\033[33m",    /* yellow */
		[STATE_DISK] = "\033[31m",  /* red */
		[STATE_SLEEP] = "\033[34m", /* blue */
	};

	return state >= 0 && state < STATE_COUNT ? colours[state] : NULL;
}

/* The colour of the row's state and bar. */
static const char *row_colour(const struct column_list *list, const union value *values)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == KIND_STATE)
			return state_colour(values[i].number);
	return COLOUR_BAR;
}

/* The coloured part of a cell that begins at byte `from` of the line: the state, or the bar. */
static struct colour_span cell_span(const struct column *column, const struct text *line,
				    size_t from, const char *colour)
{
	struct colour_span span = {from, from, NULL};
	const char *bar;

	if (column->kind == KIND_STATE) {
		span.to = from + strcspn(text_string(line) + from, " ");
		span.colour = colour;
	} else if (column->kind == KIND_PERMILLE && (bar = strchr(text_string(line) + from, '#'))) {
		span.from = (size_t)(bar - text_string(line));
		span.to = span.from + strspn(bar, "#");
		span.colour = colour;
	}
	return span;
}

/* Adds the first bytes of the line, with colours around spans, which are in order. */
static void add_coloured(struct text *out, const char *line, size_t length,
			 const struct colour_span *spans, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count && spans[i].to <= length; i++) {
		text_add(out, line + at, spans[i].from - at);
		text_add_string(out, spans[i].colour);
		text_add(out, line + spans[i].from, spans[i].to - spans[i].from);
		text_add_string(out, PLAIN);
		at = spans[i].to;
	}
	text_add(out, line + at, length - at);
}

/* Adds the row's cells, or the titles when values is NULL. */
static void add_row(struct text *out, const struct layout *layout, const union value *values)
{
	const struct interval *interval = layout->interval;
	const struct column_list *list = interval->grid->list;
	struct colour_span spans[COLUMN_LIST_MAX];
	const char *colour = values && interval->colour ? row_colour(list, values) : NULL;
	bool bold = !values && interval->colour;
	size_t span_count = 0;
	struct text line = {0}, cell = {0};
	const char *words;
	size_t length;

	for (size_t i = 0; i < layout->columns; i++) {
		size_t from;

		text_clear(&cell);
		if (values)
			cell_write(&cell, layout, list->items[i], values[i]);
		else
			text_add_string(&cell, list->items[i]->title);
		if (i)
			text_add_spaces(&line, GAP);
		from = line.length;
		add_cell(&line, text_string(&cell), layout->widths[i],
			 aligned_left(layout, list->items[i]), i + 1 == layout->columns);
		if (colour)
			spans[span_count] = cell_span(list->items[i], &line, from, colour);
		span_count += colour && spans[span_count].colour;
	}
	words = text_string(&line);
	length = interval->width ? text_fit(words, interval->width) : line.length;
	while (length && words[length - 1] == ' ')
		length--;
	text_add_string(out, bold ? BOLD : "");
	add_coloured(out, words, length, spans, span_count);
	text_add_string(out, bold ? PLAIN "\n" : "\n");
	text_done(&line);
	text_done(&cell);
}

static size_t interval_add_columns(struct text *out, const struct interval *interval, size_t rows)
{
	struct layout layout;

	layout_find(&layout, interval, rows);
	add_row(out, &layout, NULL);
	for (size_t row = 0; row < rows; row++) {
		add_row(out, &layout, grid_row(interval->grid, row));
		interval_add_stacks(out, interval, row);
	}
	return layout.columns;
}

void interval_add_table(struct text *out, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;
	size_t columns = interval_add_columns(out, interval, rows);
	struct text line = {0};

	for (size_t i = columns; i < list->count; i++)
		text_add_format(&line, "%s%s", i > columns ? ", " : "", list->items[i]->title);
	if (columns < list->count)
		text_add_string(&line, ": in a wider terminal");
	interval_add_line(out, interval, &line);
}

#define SHARE_LEAST 5 /* per mille: rows with less are summed up in one */
#define ROWS_LEAST 3  /* least number of rows in a window of any height */
#define OWN_LINES 2   /* lines of the titles, and of the prompt after the report */

/* The column by which rows are small; NULL: no small row is left out, either because there is no
 * such column, or because rows have exact times, which may be large where the share of the samples
 * is small. */
static const struct column *const *share_column(const struct column_list *list)
{
	const struct column *const *found = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct column *column = list->items[i];

		if (column->role == ROLE_MEASURE && column->needs & NEEDS_OF_SUMS)
			return NULL;
		if (column->kind == KIND_PERMILLE || (column->kind == KIND_THREADS && !found))
			found = &list->items[i];
	}
	return found;
}

static int64_t share_of(const struct interval *interval, const struct column *const *share,
			size_t row)
{
	return grid_row(interval->grid, row)[share - interval->grid->list->items].number;
}

/* Sum of the column in the rows from `row` on. */
static int64_t share_from(const struct interval *interval, const struct column *const *share,
			  size_t row)
{
	int64_t all = 0;

	for (; row < interval->grid->row_count; row++)
		all = sum(all, share_of(interval, share, row));
	return all;
}

/* The least share of a row that is not small. */
static int64_t share_least(const struct interval *interval, const struct column *const *share)
{
	return (*share)->kind == KIND_PERMILLE
		       ? SHARE_LEAST
		       : (share_from(interval, share, 0) * SHARE_LEAST + 999) / 1000;
}

static size_t lines_of_row(const struct interval *interval, size_t row, struct text *scratch)
{
	size_t lines = 1;

	text_clear(scratch);
	interval_add_stacks(scratch, interval, row);
	for (size_t i = 0; i < scratch->length; i++)
		lines += scratch->bytes[i] == '\n';
	return lines;
}

/* Number of the first of `rows` rows that fit into that many lines. */
static size_t rows_in_lines(const struct interval *interval, size_t rows, size_t lines)
{
	struct text scratch = {0};
	size_t row = 0, taken = 0;

	while (row < rows && (taken += lines_of_row(interval, row, &scratch)) <= lines)
		row++;
	text_done(&scratch);
	return row;
}

/* The number of first rows that fit into the interval's height beside other_lines, without those
 * below half a per cent; all rows if the height is not known. */
static size_t report_rows(const struct interval *interval, size_t other_lines)
{
	size_t rows = interval->grid->row_count, all = rows, fit, least;
	const struct column *const *share = share_column(interval->grid->list);
	size_t lines = interval->height > other_lines + OWN_LINES
			       ? interval->height - other_lines - OWN_LINES
			       : 0;

	if (share && (interval->height || interval->rows_folded))
		for (int64_t small = share_least(interval, share);
		     rows && share_of(interval, share, rows - 1) < small; rows--)
			;
	/* a line in place of one row takes as much height as the row */
	if (!rows ||
	    (rows + 1 >= all && !(share && rows < all && !share_of(interval, share, rows))))
		rows = all;
	if (!interval->height)
		return interval->row_limit && rows > interval->row_limit ? interval->row_limit
									 : rows;
	fit = rows_in_lines(interval, rows, lines);
	if (fit < all)
		fit = rows_in_lines(interval, rows, lines ? lines - 1 : 0);
	least = rows < ROWS_LEAST ? rows : ROWS_LEAST;
	return fit < least ? least : fit;
}

/* Adds the share of the rows that are left out, as that of all without the others. */
static void add_shares(struct text *line, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;

	for (size_t i = 0; i < list->count; i++) {
		int64_t share = 0;

		if (list->items[i]->kind != KIND_PERMILLE)
			continue;
		for (size_t row = 0; row < rows; row++)
			share += grid_row(interval->grid, row)[i].number;
		text_add_string(line, ", ");
		text_add_decimals(line, share < 1000 ? 1000 - share : 0, 1);
		text_add_string(line, " %");
	}
}

static bool lists_programs(const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_MEASURE &&
		    list->items[i]->offset == offsetof(struct measures, program))
			return true;
	return false;
}

/* Adds one line for the rows from `rows` on: "38 more rows, 6.1 %". */
static void interval_add_rest(struct text *out, const struct interval *interval, size_t rows)
{
	const struct column *const *share = share_column(interval->grid->list);
	size_t left = interval->grid->row_count - rows;
	bool programs = lists_programs(interval->grid->list);
	struct text line = {0};

	text_add_format(&line, "%zu more %s%s", left, programs ? "program" : "row",
			left == 1 ? "" : "s");
	add_shares(&line, interval, rows);
	if (share && (*share)->kind == KIND_THREADS && share_from(interval, share, rows)) {
		text_add_string(&line, " with ");
		text_add_decimals(&line, share_from(interval, share, rows), 2);
		text_add_string(&line, " threads");
	}
	text_add_string(&line, programs ? ": --all-rows" : " (--all-rows shows them)");
	interval_add_line(out, interval, &line);
}

/* Lines ---------------------------------------------------------------------------------------- */

/* NULL: not requested. */
static const struct findings *findings_of(const struct interval *interval)
{
	return interval->report ? report_state(interval->report, &findings_part) : NULL;
}

void interval_add_wrapped(struct text *out, const struct interval *interval, const char *line)
{
	size_t width = interval->width ? interval->width : SIZE_MAX;

	while (*line) {
		size_t fit = text_fit(line, width), cut = fit;

		while (line[fit] && cut && line[cut] != ' ')
			cut--;
		if (!cut)
			cut = fit ? fit : strlen(line); /* a word wider than the line */
		text_add(out, line, cut);
		text_add_char(out, '\n');
		line += cut + strspn(line + cut, " ");
	}
}

void interval_add_line(struct text *out, const struct interval *interval, struct text *line)
{
	interval_add_wrapped(out, interval, text_string(line));
	text_done(line);
}

/* Adds total / scans as "2.50". */
static void add_average(struct text *out, int64_t total, int64_t scans)
{
	text_add_decimals(out, ratio(total, 100, scans), 2);
}

void interval_add_times(struct text *out, const struct interval *interval, bool day, int decimals)
{
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];
	int width = (int)strlen("00:00:00") + (decimals ? 1 + decimals : 0);

	clock_format_local(interval->tally->from_us, from);
	clock_format_local(interval->tally->until_us, until);
	if (day)
		text_add_format(out, "%.11s", from);
	text_add_format(out, "%.*s to ", width, from + CLOCK_LOCAL_TIME);
	if (strncmp(from, until, CLOCK_LOCAL_TIME))
		text_add_format(out, "%.11s", until);
	text_add_format(out, "%.*s %s", width, until + CLOCK_LOCAL_TIME, until + CLOCK_LOCAL_ZONE);
}

void interval_add_origin(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	text_add_string(out, "tsnap");
	if (interval->recording) {
		text_add_string(out, ", replay of ");
		text_add_printable(out, interval->recording);
	}
	if (*status->host) {
		text_add_string(out, " on ");
		text_add_printable(out, status->host);
	}
	if (*status->kernel) {
		text_add_string(out, ", Linux ");
		text_add_printable(out, status->kernel);
	}
	if (status->cpus != ABSENT)
		text_add_format(out, ", %lld CPU%s", (long long)status->cpus,
				status->cpus == 1 ? "" : "s");
	if (!interval->tally->scans)
		return;
	text_add_string(out, ", ");
	interval_add_times(out, interval, true, 3);
}

void interval_add_scans(struct text *out, const struct interval *interval)
{
	const struct tally *tally = interval->tally;

	text_add_format(out, "%lld scan%s in ", (long long)tally->scans,
			tally->scans == 1 ? "" : "s");
	text_add_decimals(out, ratio(tally->elapsed_us, 100, US_PER_SECOND), 2);
	text_add_string(out, " s, ");
	text_add_decimals(out, ratio(tally->scans, 100 * US_PER_SECOND, tally->elapsed_us), 2);
	text_add_string(out, " Hz");
	if (interval->status->rate_hz != ABSENT)
		text_add_format(out, " (-F %lld)", (long long)interval->status->rate_hz);
	if (tally->threads) {
		text_add_string(out, "; threads seen: ");
		add_average(out, tally->threads, tally->scans);
		text_add_format(out, " on average, %lld at most", (long long)tally->threads_max);
	}
	text_add_string(out, "; active: ");
	add_average(out, tally->active, tally->scans);
	text_add_format(out, " on average, %lld at most", (long long)tally->active_max);
}

/* Adds a percentage as "12.3 %". */
static void add_percent(struct text *line, int64_t part, int64_t whole)
{
	text_add_decimals(line, ratio(part, 1000, whole), 1);
	text_add_string(line, " %");
}

/* Adds the share of time in which threads waited for a resource, if it is at least `least` per
 * mille: of all threads, whatever the filter. */
static void add_pressure_of(struct text *line, const char *of,
			    const struct source_pressure pressures[RESOURCE_COUNT], bool host,
			    int64_t least)
{
	static const char *const names[RESOURCE_COUNT] = {
		[RESOURCE_CPU] = "CPU",
		[RESOURCE_MEMORY] = "memory",
		[RESOURCE_IO] = "I/O",
	};
	size_t start = line->length;

	for (int i = 0; i < RESOURCE_COUNT; i++) {
		const struct source_pressure *pressure = &pressures[i];

		if (!pressure->known || !pressure->read_us ||
		    ratio(pressure->some_us, 1000, pressure->read_us) < least)
			continue;
		if (line->length > start)
			text_add_char(line, ',');
		else
			text_add_format(line, "Pressure (PSI) of %s:", of);
		text_add_format(line, " %s some ", names[i]);
		add_percent(line, pressure->some_us, pressure->read_us);
		if (i == RESOURCE_CPU && host)
			continue; /* cpu full is always 0 for a host */
		text_add_string(line, " full ");
		add_percent(line, pressure->full_us, pressure->read_us);
	}
}

static void add_pressure(struct text *line, const struct interval *interval)
{
	add_pressure_of(line, "the host", interval->status->pressure, true,
			findings_of(interval) ? PRESSURE_LEAST : 0);
}

static void add_group_pressure(struct text *line, const struct interval *interval)
{
	add_pressure_of(line, interval->status->pressed_group, interval->status->group_pressure,
			false, findings_of(interval) ? PRESSURE_LEAST : 0);
}

static void add_legend(struct text *line, const struct interval *interval)
{
	text_add_string(line, "ON on a CPU, RQ waits for a CPU, D disk or kernel lock, S asleep in "
			      "a request.");
}

/* Adds that the clock was set: durations are right, times before that are by another clock. */
static void add_clock_steps(struct text *line, const struct interval *interval)
{
	const struct tally *tally = interval->tally;

	if (!tally->clock_steps)
		return;
	text_add_string(line, "Note: ");
	clock_step_add(line, tally->clock_step_us, tally->clock_stepped_us, interval->recording);
	if (tally->clock_steps > 1)
		text_add_format(line, ", and %lld times before", (long long)tally->clock_steps - 1);
}

static void add_absent(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	for (size_t i = 0; i < status->absent_count; i++) {
		text_add_string(line, i ? "; " : "Absent on this host: ");
		absent_add(line, interval->grid->list, &status->absent[i]);
	}
}

static void add_unrecorded(struct text *line, const struct interval *interval)
{
	if (!interval->unrecorded)
		return;
	text_add_string(line, "Not in the recording: ");
	unrecorded_add(line, interval->unrecorded, NULL);
}

/* Adds a time as "0.31 s". */
static void add_seconds(struct text *line, int64_t us)
{
	text_add_decimals(line, ratio(us, 100, US_PER_SECOND), 2);
	text_add_string(line, " s");
}

/* Adds how much of the exact time is of threads that samples saw in that state, and which times are
 * not exact. */
static void add_coverage(struct text *line, const struct interval *interval)
{
	const struct tally *tally = interval->tally;
	int64_t exact_us = 0, covered_us = 0;

	for (int kind = 0; kind < TIME_KINDS; kind++) {
		if (!tally->all_us[kind] || !tally->samples)
			continue;
		text_add_string(line, line->length ? ", " : "Exact times: ");
		text_add_decimals(line, ratio(tally->covered_us[kind], 1000, tally->all_us[kind]),
				  1);
		text_add_format(line, " %% of %s", state_row(time_kind_state(kind))->name);
		exact_us = sum(exact_us, tally->all_us[kind]);
		covered_us = sum(covered_us, tally->covered_us[kind]);
	}
	if (exact_us)
		text_add_string(line, " are of threads that a scan saw in that state");
	if (covered_us < exact_us)
		text_add_string(line, "; what the others did is not known: rows with -");
	if (exact_us && tally->shared_us > exact_us)
		text_add_string(
			line,
			tally->all_us[TIME_ASLEEP]
				? ""
				: "; S counts samples (exact where all states are sampled: -a)");
}

/* Adds counts of processes: those that live for less than the time between two scans are in few
 * samples. */
static void add_processes(struct text *line, const struct interval *interval)
{
	const struct tally *tally = interval->tally;

	if (!tally->forks && !tally->execs && !tally->exits)
		return;
	text_add_format(line, "Processes: %lld forks, %lld execs, %lld exits",
			(long long)tally->forks, (long long)tally->execs, (long long)tally->exits);
	if (tally->dead_cpu_us) {
		text_add_string(line, "; threads that ended had used ");
		add_seconds(line, tally->dead_cpu_us);
		text_add_string(line, " of CPU time, most of it: ");
		text_add_printable(line, tally->most_comm ? tally->most_comm : ABSENT_TEXT);
		text_add_string(line, " (");
		text_add_printable(line, tally->most_user ? tally->most_user : ABSENT_TEXT);
		text_add_string(line, ") ");
		add_seconds(line, tally->most_cpu_us);
	}
}

/* Adds the control groups whose threads did not run because of a quota, as the kernel counts it. */
static void add_quotas(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	size_t shown = status->quota_count < QUOTAS_SHOWN ? status->quota_count : QUOTAS_SHOWN;
	size_t more = status->quota_count - shown + status->quotas_more;

	for (size_t i = 0; i < shown; i++) {
		const struct source_quota *quota = &status->quotas[i];

		text_add_string(line, i ? "; " : "Throttled by CPU quotas: ");
		text_add_printable(line, quota->path);
		text_add_char(line, ' ');
		add_seconds(line, quota->throttled_us);
		text_add_format(line, " on its CPUs, in %lld of %lld periods",
				(long long)quota->throttled_periods, (long long)quota->periods);
	}
	if (shown && more)
		text_add_format(line, "; and %zu more control groups", more);
}

/* Use of a limit in percent of what the interval allows. More than 100: unused I/O was saved
 * before, which limits permit. */
static int64_t limit_percent(const struct interval *interval, const struct source_io_limit *limit)
{
	int64_t allowed = ratio(limit->limit, interval->tally->elapsed_us, US_PER_SECOND);

	return allowed > 0 ? ratio(limit->used, 100, allowed) : 0;
}

/* Adds the control groups with limits of I/O, and how far they used them: the kernel does not
 * report how long it throttled them. */
static void add_io_limits(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	size_t shown = 0;

	for (size_t i = 0; i < status->io_limit_count && interval->tally->elapsed_us; i++) {
		const struct source_io_limit *limit = &status->io_limits[i];
		int64_t percent = limit_percent(interval, limit);

		if (percent < LIMIT_PERCENT_LEAST)
			continue;
		text_add_string(line, shown++ ? "; " : "I/O limits: ");
		text_add_printable(line, limit->path);
		text_add_format(line, " used %lld %% of %s=%lld on ", (long long)percent,
				limit->word, (long long)limit->limit);
		text_add_printable(line, limit->device);
	}
}

/* Adds how long interrupts and the hypervisor had CPUs, if that is 1 % of one. */
static void add_taken(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	for (int use = 0; use < CPU_USE_COUNT; use++) {
		const struct source_cpu *most = status->taken;
		int64_t us = 0;

		for (size_t i = 0; i < status->taken_count; i++) {
			us += status->taken[i].taken_us[use];
			if (status->taken[i].taken_us[use] > most->taken_us[use])
				most = &status->taken[i];
		}
		if (!us || us < interval->tally->elapsed_us / TAKEN_PART)
			continue;
		text_add_format(line, "%s%s ",
				line->length ? ", " : "Taken from CPUs: ", cpu_use_names[use]);
		add_seconds(line, us);
		text_add_format(line, " (of CPU %lld ", (long long)most->cpu);
		add_percent(line, most->taken_us[use], interval->tally->elapsed_us);
		text_add_string(line, use != CPU_USE_STEAL && status->taken_by_tick == 1
					      ? ", by tick)"
					      : ")");
	}
}

/* Adds how much of what was read from disks had been evicted a moment ago, if that is a problem. */
static void add_refaults(struct text *line, const struct interval *interval)
{
	const int64_t percent =
		source_status_refaulted(interval->status, interval->tally->elapsed_us);

	if (percent)
		text_add_format(
			line,
			"Page cache: %lld %% of the %lld MB read from disks had been evicted "
			"a moment ago: memory is short",
			(long long)percent, (long long)(interval->status->disk_read / MEGABYTE));
}

static void add_missed(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	for (size_t i = 0; i < status->missed_count; i++) {
		if (!status->missed[i].count)
			continue;
		text_add_string(line, line->length ? "; " : "Missed: ");
		missed_add(line, &status->missed[i]);
	}
}

/* Returns how far the exact CPU times may differ from the busy time of the CPUs. */
static int64_t check_bound_us(const struct interval *interval)
{
	const struct source_status *status = interval->status;

	int64_t busy_us = status->busy_us / BUSY_PART,
		all_us = interval->tally->elapsed_us / CPUS_PART * status->cpus;

	return (busy_us > all_us ? busy_us : all_us) + TICKS_US * status->cpus +
	       status->busy_error_us;
}

static void add_check(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	int64_t reported_us;

	if (!status->busy_checks || !interval->tally->cpu_us || status->busy_us == ABSENT ||
	    status->own_cpu_ns == ABSENT)
		return;
	reported_us = sum(interval->tally->cpu_us, status->own_cpu_ns / NS_PER_US);
	if (llabs(reported_us - status->busy_us) <= check_bound_us(interval) ||
	    (reported_us < status->busy_us &&
	     status->busy_us < interval->tally->elapsed_us / QUIET_PART * status->cpus))
		return;
	text_add_string(line, "Exact times may be wrong: all rows and tsnap itself have ");
	add_seconds(line, reported_us);
	text_add_string(line, " of CPU time, and the CPUs were busy for ");
	add_seconds(line, status->busy_us);
	text_add_string(line, " (/proc/stat)");
}

/* Adds a share as ", 1.23 % of one CPU". */
static void add_cpu_share(struct text *line, int64_t ns, int64_t elapsed_ns)
{
	if (!elapsed_ns)
		return;
	text_add_string(line, ", ");
	text_add_decimals(line, ratio(ns, 10000, elapsed_ns), 2);
	text_add_string(line, " % of one CPU");
}

static void add_cost(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	if (status->own_cpu_ns != ABSENT) {
		text_add_string(line, "tsnap itself: ");
		text_add_decimals(line, ratio(status->own_cpu_ns, 1, 100000), 1);
		text_add_string(line, " ms of CPU time");
		add_cpu_share(line, status->own_cpu_ns, status->own_ns);
	}
	if (status->bpf_ns != ABSENT && status->bpf_runs != ABSENT) {
		text_add_string(line, line->length ? "; its BPF programs: " : "BPF programs: ");
		text_add_decimals(line, ratio(status->bpf_ns, 1, 100000), 1);
		text_add_format(line, " ms in %lld runs", (long long)status->bpf_runs);
		add_cpu_share(line, status->bpf_ns,
			      ratio(interval->tally->elapsed_us, NS_PER_US, 1));
		text_add_format(line, ", %lld ns a run",
				(long long)ratio(status->bpf_ns, 1, status->bpf_runs));
	}
}

/* Adds to an empty line; nothing, if there is nothing to say. */
typedef void line_adder(struct text *line, const struct interval *interval);

static void add_line(struct text *out, const struct interval *interval, line_adder *add)
{
	struct text line = {0};

	add(&line, interval);
	interval_add_line(out, interval, &line);
}

void interval_add_absent(struct text *out, const struct interval *interval)
{
	add_line(out, interval, add_absent);
	add_line(out, interval, add_unrecorded);
}

void interval_add_missed(struct text *out, const struct interval *interval)
{
	add_line(out, interval, add_missed);
}

static void add_heads(struct text *line, const struct interval *interval)
{
	REPORT_EACH (use, interval->report, head)
		use->part->head(line, interval, use->state);
}

static void add_header(struct text *out, const struct interval *interval)
{
	add_line(out, interval, interval_add_origin);
	add_line(out, interval, interval_add_scans);
	add_line(out, interval, add_clock_steps);
	add_line(out, interval, add_pressure);
	add_line(out, interval, add_group_pressure);
	add_line(out, interval, add_taken);
	add_line(out, interval, add_refaults);
	add_line(out, interval, add_heads);
	text_add_char(out, '\n');
}

/* Adds what is shown below the rows, before the footer. */
static void add_tables(struct text *out, const struct interval *interval)
{
	REPORT_EACH (use, interval->report, below)
		use->part->below(out, interval, use->state);
}

void interval_add_instead(struct text *out, const struct interval *interval)
{
	REPORT_EACH (use, interval->report, instead) {
		use->part->instead(out, interval, use->state);
		return;
	}
	interval_add_sleepers(out, interval, NULL);
}

static void footer_add(struct text *out, const struct interval *interval)
{
	size_t footer;

	add_tables(out, interval);
	footer = out->length;
	text_add_char(out, '\n');
	add_line(out, interval, add_coverage);
	REPORT_EACH (use, interval->report, footer)
		use->part->footer(out, interval, use->state);
	add_line(out, interval, add_processes);
	add_line(out, interval, add_quotas);
	add_line(out, interval, add_io_limits);
	interval_add_absent(out, interval);
	add_line(out, interval, add_check);
	if (interval->status->self.requested) {
		interval_add_self(out, interval);
	} else {
		add_line(out, interval, add_missed);
		add_line(out, interval, add_cost);
	}
	/* an empty line precedes the footer, or else ends the report */
	if (out->length > footer + 1)
		text_add_char(out, '\n');
}

static size_t lines_count(const struct text *text, size_t from)
{
	size_t lines = 0;

	for (; from < text->length; from++)
		lines += text->bytes[from] == '\n';
	return lines;
}

/* Remarks on a report with findings, and what changes its meaning ------------------------------ */

/* Adds how much of the time samples did not see, if that is most of a state in which threads were
 * for much of the time. */
static void add_unseen(struct text *line, const struct interval *interval)
{
	const struct tally *tally = interval->tally;

	if (tally->shared_us < tally->elapsed_us / QUIET_THREADS)
		return;
	for (int kind = TIME_ON; kind <= TIME_DISK; kind++) {
		int64_t all_us = tally->all_us[kind], unseen_us = all_us - tally->covered_us[kind];

		if (unseen_us <= all_us / 2 || all_us < tally->shared_us / UNSEEN_PART)
			continue;
		text_add_format(line, "%s%lld %% of the time in %s", line->length ? ", " : "Note: ",
				(long long)ratio(unseen_us, 100, all_us),
				state_row(time_kind_state(kind))->name);
	}
	if (line->length)
		text_add_string(line, " was not sampled: what those threads did is not known");
}

/* Adds what is missed that changes the meaning of the report, such as processes left out. */
static void add_left_out(struct text *line, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	for (size_t i = 0; i < status->missed_count; i++) {
		if (!status->missed[i].always)
			continue;
		text_add_string(line, line->length ? "; " : "Missed: ");
		missed_add(line, &status->missed[i]);
	}
}

/* Adds the remarks of a report with findings, a line each. Returns their number. */
static size_t remarks_add(struct text *out, const struct interval *interval)
{
	static line_adder *const adders[] = {
		add_quotas, add_io_limits, add_pressure, add_group_pressure,
		add_taken,  add_refaults,  add_absent,	 add_unrecorded,
	};
	const struct source_status *status = interval->status;
	struct text line = {0};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(adders) / sizeof(adders[0]); i++) {
		text_clear(&line);
		adders[i](&line, interval);
		count += line.length > 0;
		interval_add_wrapped(out, interval, text_string(&line));
	}
	for (size_t i = 0; i < status->missed_count && !status->self.requested; i++) {
		if (!status->missed[i].count || status->missed[i].always)
			continue;
		text_clear(&line);
		text_add_string(&line, "Missed: ");
		missed_add(&line, &status->missed[i]);
		interval_add_wrapped(out, interval, text_string(&line));
		count++;
	}
	text_done(&line);
	return count;
}

/* Adds what changes the meaning of a report, a line each. */
static void warnings_add(struct text *out, const struct interval *interval)
{
	add_line(out, interval, add_clock_steps);
	add_line(out, interval, add_check);
	add_line(out, interval, add_unseen);
	add_line(out, interval, add_left_out);
}

void interval_add_notes(struct text *out, const struct interval *interval)
{
	warnings_add(out, interval);
	remarks_add(out, interval);
	add_line(out, interval, add_coverage);
	add_line(out, interval, add_processes);
	add_line(out, interval, add_cost);
}

static void details_add(struct text *out, const struct interval *interval)
{
	add_line(out, interval, interval_add_scans);
	add_line(out, interval, add_coverage);
	add_line(out, interval, add_processes);
	if (interval->status->self.requested)
		interval_add_self(out, interval);
	else
		add_line(out, interval, add_cost);
}

/* Adds what tsnap cost, how many remarks there are, and columns for which the line is too narrow.
 */
static void add_last_line(struct text *line, const struct interval *interval, size_t remarks,
			  size_t columns)
{
	const struct column_list *list = interval->grid->list;
	int64_t own_ns = interval->status->own_cpu_ns;
	int64_t elapsed_ns = interval->status->own_ns;

	if (own_ns != ABSENT && elapsed_ns) {
		text_add_string(line, "tsnap used ");
		text_add_decimals(line, ratio(own_ns, 1000, elapsed_ns), 1);
		text_add_string(line, " % of a CPU. ");
	}
	if (!remarks)
		text_add_string(line, "No remarks");
	else
		text_add_format(line, "%zu remark%s", remarks, remarks == 1 ? "" : "s");
	text_add_string(line, !remarks ? "." : interval->verbose ? ":" : ": -v.");
	for (size_t i = columns; i < list->count; i++)
		text_add_format(line, "%s%s", i == columns ? " If wider: " : ", ",
				list->items[i]->title);
	text_add_string(line, columns < list->count ? "." : "");
}

/* A report with findings: a line about the host, findings, rows, a legend, and one line of footer.
 */
static void findings_report_add(struct text *out, const struct interval *interval)
{
	const struct grid *grid = interval->grid;
	const struct findings *findings = findings_of(interval);
	bool rows_wanted = !findings->alone;
	size_t start = out->length, rows, columns = grid->list->count, remarks;
	struct text below = {0}, told = {0}, line = {0};

	if (interval->follows)
		text_add_char(out, '\n');
	interval_add_findings_header(out, interval, findings);
	text_add_char(out, '\n');
	warnings_add(out, interval);
	if (grid->row_count || findings->count || !rows_wanted)
		interval_add_findings(out, interval, findings, lines_count(out, start));
	add_tables(&below, interval);
	remarks = remarks_add(&told, interval);
	if (!interval->verbose)
		text_clear(&told);
	else
		details_add(&told, interval);
	if (interval->status->self.requested && !interval->verbose)
		interval_add_self(&told, interval);
	rows = report_rows(interval, lines_count(out, start) + lines_count(&below, 0) +
					     lines_count(&told, 0) + FIXED_LINES);
	if (rows_wanted && rows) {
		text_add_char(out, '\n');
		columns = interval_add_columns(out, interval, rows);
		if (rows < grid->row_count)
			interval_add_rest(out, interval, rows);
		add_line(out, interval, add_legend);
	} else if (rows_wanted && !grid->row_count) {
		interval_add_instead(out, interval);
	}
	text_add(out, text_string(&below), below.length);
	add_last_line(&line, interval, remarks, columns);
	interval_add_wrapped(out, interval, text_string(&line));
	text_add(out, text_string(&told), told.length);
	text_done(&below);
	text_done(&told);
	text_done(&line);
}

static void people_add(struct text *out, const struct interval *interval)
{
	size_t start = out->length, rows;
	struct text footer = {0};
	bool heatmap;

	if (findings_of(interval)) {
		findings_report_add(out, interval);
		return;
	}
	footer_add(&footer, interval);
	add_header(out, interval);
	rows = report_rows(interval, lines_count(out, start) + lines_count(&footer, 0));
	heatmap = interval->report && interval->report->steps;
	if (rows && heatmap)
		interval_add_heatmap(out, interval);
	else if (rows)
		interval_add_table(out, interval, rows);
	else
		interval_add_instead(out, interval);
	if (rows < interval->grid->row_count && !heatmap)
		interval_add_rest(out, interval, rows);
	text_add(out, text_string(&footer), footer.length);
	text_done(&footer);
}

const struct renderer renderer_report = {
	.name = "report",
	.kind = RENDERER_REPORT,
	.grouped = true,
	.accounts = true,
	.has_footer = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = people_add,
};
