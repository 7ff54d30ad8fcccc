/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/groups.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/group_split.h"
#include "report/late_waits.h"
#include "report/value.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TIME_ROWS_MAX (1u << 18)
/* Groups are seldom in the CPU's cache, and take as long as some samples to get there. */
#define SAMPLES_PREFETCHED ((size_t)3)

static const struct column time_column = {
	"time", "TIME", "", KIND_TEXT, ROLE_KEY, 0, 10, 0,
};

struct groups {
	struct report *report;
	struct group_table table;
	struct late_waits late; /* samples that are not in groups yet */
	struct time_rows steps; /* --by-time */
	int64_t stackless;	/* samples of the interval; without a stack, unless stacks_seen */
	bool stacks_seen;	/* a sample had a stack */
};

static void late_take(void *to, const struct sample *sample, struct exact_note note)
{
	report_add(to, sample, note);
}

/* Shares the exact times of the samples so far out among all tables. */
static void share_out(struct groups *groups)
{
	late_waits_end(&groups->late, late_take, groups->report);
	group_tables_share_out(&groups->report->times);
}

/* list: columns of the groups; must outlive the rows. */
static void time_rows_init(struct time_rows *rows, int64_t step_us, const struct column_list *list)
{
	if (!step_us)
		return;
	rows->step_us = step_us;
	rows->from_us = ABSENT;
	rows->list = (struct column_list){.items = {&time_column}, .count = 1};
	for (size_t i = 0; i < list->count && rows->list.count < COLUMN_LIST_MAX; i++)
		rows->list.items[rows->list.count++] = list->items[i];
	grid_size(&rows->grid, &rows->list, 0);
}

/* Name of the present step, as short as the step allows: to the minute, the second or the
 * microsecond. */
static const char *step_name(const struct time_rows *rows)
{
	char text[CLOCK_LOCAL_SIZE];
	size_t length = rows->step_us % (60 * US_PER_SECOND) == 0 ? 16
			: rows->step_us % US_PER_SECOND == 0	  ? 19
								  : 26;

	clock_format_local(rows->from_us, text);
	text[length] = '\0';
	return name_transient_string(text);
}

/* Appends the rows of the step to those of the steps before. */
static void step_add(struct groups *groups)
{
	struct time_rows *rows = &groups->steps;
	size_t columns = rows->list.count - 1, before = rows->grid.row_count, count;
	union value time;

	share_out(groups);
	group_table_end_interval(&groups->table, &rows->tally);
	grid_fill_groups(&rows->step_grid, &groups->table, &rows->tally);
	count = rows->step_grid.row_count;
	if (before + count > TIME_ROWS_MAX) {
		rows->refused += (int64_t)count;
		return;
	}
	grid_size(&rows->grid, &rows->list, before + count);
	rows->steps = memory_grow(rows->steps, &rows->step_capacity, rows->step_count + 1,
				  sizeof(*rows->steps));
	rows->steps[rows->step_count++] = (struct time_step){rows->from_us, before + count};
	time.text = step_name(rows);
	for (size_t i = 0; i < count; i++) {
		union value *to = rows->grid.values + (before + i) * rows->list.count;

		*to = time;
		memcpy(to + 1, grid_row(&rows->step_grid, i), columns * sizeof(*to));
	}
}

/* Ends the last step. */
static void time_rows_end(struct groups *groups)
{
	struct time_rows *rows = &groups->steps;

	if (!rows->step_us || rows->from_us == ABSENT)
		return;
	step_add(groups);
	group_table_clear(&groups->table);
	rows->tally = (struct tally){0};
	rows->from_us = ABSENT;
}

/* Begin of the step of that time. */
static int64_t step_from_us(const struct time_rows *rows, int64_t time_us)
{
	int64_t in_step = time_us % rows->step_us;

	return time_us - in_step - (in_step < 0 ? rows->step_us : 0);
}

/* Call before samples of that time are added to groups and tally. If another step begins then, the
 * groups of the step before become rows, and are cleared. */
static void time_rows_begin(struct groups *groups, int64_t time_us)
{
	struct time_rows *rows = &groups->steps;

	if (!rows->step_us || rows->from_us == step_from_us(rows, time_us))
		return;
	time_rows_end(groups);
	rows->from_us = step_from_us(rows, time_us);
}

static void time_rows_done(struct time_rows *rows)
{
	grid_done(&rows->grid);
	grid_done(&rows->step_grid);
	free(rows->steps);
}

/* The kinds of time that are shared out, a bit each. If a filter refuses some samples of a state
 * and accepts others, it is open how much of the thread's time is meant, except in a replay, where
 * refused samples are counted, too. Sleep is also open, as only some of it is shown without -a. */
static unsigned int kinds_shared(const struct report *report)
{
	const struct filter *filter = &report->filter;
	unsigned int kinds = 0;

	if (report->config->raw || (!filter_keeps_threads(filter) && !report->query.recorded))
		return 0;
	for (int kind = 0; kind < TIME_KINDS; kind++)
		if (filter_wants_state(filter, time_kind_state(kind)) &&
		    (kind != TIME_ASLEEP || filter->all_states))
			kinds |= 1u << kind;
	return kinds;
}

static int groups_begin(void *state, struct report *report)
{
	const struct report_config *config = report->config;
	struct groups *groups = state;

	if (!report->grouped)
		return 0;
	groups->report = report;
	group_table_init(&groups->table, &report->list);
	if (!config->critical_path)
		group_table_know_alike(&groups->table);
	time_rows_init(&groups->steps, config->by_time_us, &report->list);
	if (config->by_time_us)
		report->rows = &groups->steps.grid;
	report->steps = config->heatmap ? &groups->steps : NULL;
	report->times.shared = report->rows_of_groups ? kinds_shared(report) : 0;
	if (report->times.shared) {
		group_table_split(&groups->table, &report->times,
				  !filter_keeps_threads(&report->filter) ? REST_LEFT_OUT
				  : report->for_people			 ? REST_LARGE_GROUPS
									 : REST_GROUPS);
	}
	if (!groups->table.names_programs ||
	    !(config->stacks || report->kind_count || config->by_time_us))
		return 1;
	return error_set(report->e, EINVAL, EXIT_USAGE,
			 "column program can't go with %s: group by commsum",
			 config->stacks	      ? "--stacks"
			 : report->kind_count ? "--trace and --slower"
					      : "--by-time and --heatmap");
}

static uint64_t groups_needs(const void *state)
{
	const struct groups *groups = state;
	unsigned int shared = groups->report->times.shared;
	uint64_t needs = column_list_needs(&groups->report->list);

	if (shared)
		needs |= NEED_TOTALS | (shared >> TIME_ASLEEP & 1 ? NEED_SLEEP : 0);
	return needs;
}

/* Begins a scan: of exact times up to it, that long after what the tally has. */
static void scan_begin(struct groups *groups, const struct scan *scan)
{
	struct report *report = groups->report;

	time_rows_begin(groups, scan->time_us);
	exact_times_at(&report->times, sum(groups->steps.step_us ? groups->steps.tally.elapsed_us
								 : report->tally.elapsed_us,
					   scan->weight_us));
}

void groups_add_silence(struct report *report, int64_t weight_us, int64_t from_us,
			int64_t silent_us)
{
	struct groups *groups = report_state(report, &groups_part);
	struct time_rows *rows = &groups->steps;
	int64_t until_us = from_us + silent_us, in_step;

	if (!rows->step_us)
		return;
	/* steps between the first and the last one have no rows */
	in_step = until_us % rows->step_us;
	if (rows->from_us != ABSENT && from_us < rows->from_us + rows->step_us) {
		int64_t first = rows->from_us + rows->step_us - from_us;

		first = first < silent_us ? first : silent_us;
		tally_add_silence(&rows->tally, from_us, first, ratio(first, 1, weight_us));
		silent_us -= first;
	}
	time_rows_begin(groups, until_us);
	if (in_step < silent_us)
		silent_us = in_step;
	tally_add_silence(&rows->tally, until_us - silent_us, silent_us,
			  ratio(silent_us, 1, weight_us));
}

/* Takes a sample that is not shown, of a thread that may be. */
static void take_refused(struct groups *groups, struct report *report, const struct sample *sample)
{
	struct sample account;

	/* a thread whose other samples the filter may accept: this one has a part of its times */
	if (!filter_keeps_threads(&report->filter)) {
		exact_times_add(&report->times, sample);
		return;
	}
	if (!exact_times_has(&report->times, sample))
		return;
	account = sample_account(sample);
	sample_derive(&account, column_list_needs(&report->list) | filter_needs(&report->filter));
	if (filter_eval_thread(&report->filter, &account, ~0ull) == VERDICT_ACCEPTED)
		group_table_add_account(&groups->table, &account);
}

void groups_take_again(struct report *report, const struct sample *sample)
{
	struct groups *groups = report_state(report, &groups_part);
	struct exact_note note = {.part = EXACT_PART_NONE, .again = true};

	if (groups->table.split)
		note = exact_times_add_again(&report->times, sample);
	report_add(report, sample, note);
	report->tally.samples += sample_scans(sample);
}

static bool groups_take(void *state, struct report *report, const struct scan *batch)
{
	struct groups *groups = state;

	scan_begin(groups, batch);
	for (size_t i = 0; i < batch->refused_count; i++)
		take_refused(groups, report, &batch->refused[i]);
	for (size_t i = 0; i < batch->count; i++) {
		const struct sample *sample = &batch->samples[i];
		struct exact_note note = EXACT_NOTE_NONE;

		if (i + 2 * SAMPLES_PREFETCHED < batch->count)
			for (size_t j = 0; j < report->times.table_count; j++)
				group_table_prefetch(report->times.tables[j],
						     sample + SAMPLES_PREFETCHED,
						     sample + 2 * SAMPLES_PREFETCHED);
		if (groups->table.split)
			note = exact_times_add(&report->times, sample);
		if (!late_waits_hold(&groups->late, sample, note))
			report_add(report, sample, note);
		groups->stacks_seen |= sample->stack.both != NULL;
		groups->stackless++;
	}
	if (group_tables_crowded(&report->times))
		share_out(groups);
	return false;
}

void groups_end_batch(struct report *report, const struct scan *batch)
{
	struct groups *groups = report_state(report, &groups_part);

	tally_add_batch(&report->tally, batch);
	tally_add_batch(&groups->steps.tally, batch);
}

static void groups_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct groups *groups = state;

	group_table_add_noted(&groups->table, sample, note);
}

static void groups_add_account(void *state, const struct sample *account)
{
	struct groups *groups = state;

	group_table_add_account(&groups->table, account);
}

void groups_end_scan(struct report *report, const struct scan *scan)
{
	struct groups *groups = report_state(report, &groups_part);

	tally_add(&report->tally, scan);
	tally_add(&groups->steps.tally, scan);
}

/* True if a sample without a system call does not say that its thread was in none. */
static bool calls_unknown(const struct report *report)
{
	const struct source_status *status = report->status;
	struct source *source = report->source;

	if (status->of_proc)
		return true;
	for (size_t i = 0; i < status->absent_count; i++)
		if (status->absent[i].needs & NEED_SYSCALL)
			return true;
	return source->lacks && source->lacks(source, sample_column_find("syscall"));
}

static void groups_end(void *state, struct report *report)
{
	struct groups *groups = state;
	struct group_table *table = &groups->table;

	table->calls_unknown = calls_unknown(report);
	time_rows_end(groups);
	share_out(groups);
	report_miss(report, "samples dropped: more groups than tsnap keeps", table->refused);
	/* a live host's footer says why each stack was not read */
	if (report->query.recorded && report->of_stacks && !groups->stacks_seen)
		report_miss(report,
			    "samples without a stack (a recording needs the column stack, or its "
			    "--stack-dict)",
			    groups->stackless);
	report_miss(report, "rows dropped: more steps of time than tsnap keeps",
		    groups->steps.refused);
	groups->stackless = groups->steps.refused = 0;
	group_table_end_interval(table, &report->tally);
	exact_times_end_interval(&report->times);
	/* a report without samples shows the sleepers, unless exact times were requested */
	if (report->for_people && !report->tally.samples && !table->exact)
		group_table_clear(table);
	if (groups->steps.step_us || !report->rows_of_groups)
		return;
	/* CPU time of all threads; 0: the filter refuses some, or it was not counted */
	if (!query_selects(&report->query) && !table->refused)
		report->tally.cpu_us =
			table->exact ? group_table_cpu_us(table) : report->tally.all_us[TIME_ON];
	grid_fill_groups(&report->grid, table, &report->tally);
	if (report->sort)
		grid_sort(&report->grid, report->sort);
}

static void groups_clear(void *state)
{
	struct groups *groups = state;

	group_table_clear(&groups->table);
}

static void groups_done(void *state)
{
	struct groups *groups = state;

	group_table_done(&groups->table);
	late_waits_done(&groups->late);
	time_rows_done(&groups->steps);
}

/* True if the column's value changes while a thread waits. */
static bool column_changes(const struct column *column)
{
	return column->offset == offsetof(struct sample, scan.time_us) ||
	       column->offset == offsetof(struct sample, scan.weight_us) ||
	       column->offset == offsetof(struct sample, now.state_us) ||
	       column->offset == offsetof(struct sample, call.us);
}

bool groups_sum_up(const struct report *report)
{
	const struct column_list *list = &report->list;

	if (!report->rows_of_groups || report->config->by_time_us ||
	    report->config->critical_path ||
	    expression_reads(&report->filter.expression, column_changes))
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY && column_changes(list->items[i]))
			return false;
	return true;
}

bool groups_have_few(const struct report *report)
{
	bool few = report->filter.by_tid || report->filter.expression.count;

	for (size_t i = 0; i < report->list.count; i++)
		few |= report->list.items[i]->role == ROLE_KEY &&
		       report->list.items[i]->offset == offsetof(struct sample, thread.tid);
	return few;
}

const struct report_part groups_part = {.bytes = sizeof(struct groups),
					.begin = groups_begin,
					.needs = groups_needs,
					.take = groups_take,
					.add = groups_add,
					.add_account = groups_add_account,
					.end = groups_end,
					.clear = groups_clear,
					.done = groups_done};
