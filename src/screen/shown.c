/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/shown.h"
#include "report/value.h"
#include "base/memory.h"
#include "report/group_split.h"

#include <stdlib.h>
#include <string.h>

/* --- the difference of two grids of the same columns: what grew, what shrank */

static uint64_t keys_hash(const struct column_list *list, const union value *row)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			hash = hash_u64(hash ^ (uint64_t)row[i].number);
	return hash;
}

/* Texts of one snapshot are equal if their addresses are. */
static bool keys_equal(const struct column_list *list, const union value *a, const union value *b)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY && a[i].number != b[i].number)
			return false;
	return true;
}

static bool is_number(const struct column *column)
{
	return column->role == ROLE_MEASURE || column->role == ROLE_SUM;
}

static int64_t minus(int64_t a, int64_t b)
{
	return a == ABSENT && b == ABSENT ? ABSENT : sum(sum(0, a), b == ABSENT ? 0 : -b);
}

static void row_subtract(const struct column_list *list, union value *row,
			 const union value *before)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_number(list->items[i]))
			row[i].number = minus(row[i].number, before[i].number);
}

static size_t row_find(const struct grid *grid, struct index *rows, const union value *keys)
{
	uint64_t hash = keys_hash(grid->list, keys), *at;

	for (; (at = index_find(rows, hash)); hash++)
		if (keys_equal(grid->list, grid_row(grid, *at), keys))
			return *at;
	return SIZE_MAX;
}

static void rows_index(const struct grid *grid, struct index *rows)
{
	for (size_t row = 0; row < grid->row_count; row++) {
		uint64_t hash = keys_hash(grid->list, grid_row(grid, row));

		while (index_find(rows, hash))
			hash++;
		*index_put(rows, hash, NULL) = row;
	}
}

/* Orders rows by their first number: it says how much the row has changed. */
static int change_compare(const void *a, const void *b, void *from)
{
	const struct column_list *list = from;
	const union value *x = a, *y = b;
	int64_t more = 0;

	for (size_t i = 0; !more && i < list->count; i++)
		if (is_number(list->items[i]) && x[i].number != ABSENT && y[i].number != ABSENT)
			more = llabs(y[i].number) - llabs(x[i].number);
	for (size_t i = 0; !more && i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			more = value_compare(list->items[i], x[i], y[i]);
	return (more > 0) - (more < 0);
}

/* Subtracts the rows of another window with the same columns. A row that is in only
 * one of them counts as 0 in the other. */
static void grid_subtract(struct grid *grid, const struct grid *before)
{
	const struct column_list *list = grid->list;
	size_t count = grid->row_count, bytes = list->count * sizeof(union value);
	struct index rows = {0};
	union value *last;

	rows_index(grid, &rows);
	for (size_t row = 0; row < before->row_count; row++) {
		const union value *old = grid_row(before, row);
		size_t at = row_find(grid, &rows, old);

		if (at != SIZE_MAX) {
			row_subtract(list, grid->values + at * list->count, old);
			continue;
		}
		grid_size(grid, list, ++count);
		last = grid->values + (count - 1) * list->count;
		memcpy(last, old, bytes);
		for (size_t i = 0; i < list->count; i++)
			if (is_number(list->items[i]) && old[i].number != ABSENT)
				last[i].number = -old[i].number;
	}
	index_clear(&rows);
	if (count)
		qsort_r(grid->values, count, bytes, change_compare, (void *)list);
}

/* --- the window, the band and the table */

/* Age of an account when a window begins: it covers the time of a thread until then, and as much is
 * missing at the window's end. */
#define ACCOUNT_AGE_US HISTORY_ACCOUNT_US

/* State of grouping one window. */
struct filling {
	struct group_table *groups;
	struct exact_times *times;
	struct tally *tally;
	struct filter filter;
	int64_t from_us; /* start of the interval of exact times */
	int64_t lead_us; /* time from there to the window's first scan */
	bool remembers;	 /* a thread that goes on with what it does remains in its group */
};

void tally_add_history_scan(struct tally *tally, const struct history_scan *scan)
{
	const struct scan whole = {
		.time_us = scan->time_us,
		.weight_us = scan->weight_us,
		.threads = scan->threads,
		.clock_step_us = scan->clock_step_us,
	};

	if (scan->silent_us && tally->scans)
		tally_add_silence(tally, scan->time_us - scan->weight_us - scan->silent_us,
				  scan->silent_us, ratio(scan->silent_us, 1, scan->weight_us));
	tally_add(tally, &whole);
}

static void take_scan(void *to, const struct history_scan *scan)
{
	struct filling *filling = to;
	struct tally *tally = filling->tally;

	if (!tally->scans && scan->time_us - scan->weight_us > filling->from_us)
		filling->lead_us = scan->time_us - scan->weight_us - filling->from_us;
	tally_add_history_scan(tally, scan);
	exact_times_at(filling->times, sum(filling->lead_us, tally->elapsed_us));
}

static void filling_share_out(struct filling *filling)
{
	group_table_share_out(filling->groups);
	exact_times_clear(filling->times);
	filling->remembers = false; /* memos refer to shares, which are dropped now */
}

/* True if neither a key nor the filter looks at what changes while a thread goes on. */
static bool filling_remembers(const struct filling *filling)
{
	for (size_t i = 0; i < filling->groups->key_count; i++)
		if (history_varies(filling->groups->keys[i]))
			return false;
	return !expression_reads(&filling->filter.expression, history_varies);
}

static void tally_sample(struct tally *tally, const struct sample *sample)
{
	const struct state_row *state = state_row(sample->now.state);

	tally->samples += sample_scans(sample);
	tally->active += !state || state->active;
}

/* Takes a sample of a thread that goes on with what it did at its previous sample: the filter and
 * the keys, which read nothing else, lead to the same group. */
static void take_again(struct filling *filling, const struct sample *sample, uint64_t memo)
{
	struct exact_note note = exact_times_add_at(filling->times, (uint32_t)(memo >> 32), sample);

	tally_sample(filling->tally, sample);
	group_table_add_again(filling->groups, sample, (uint32_t)memo - 1, note.began);
}

/* Takes a sample. *memo: upper half the thread's index in the times, lower half the sample's share
 * plus one; 0: not known. */
static void take_sample(void *to, const struct sample *sample, uint64_t *memo)
{
	struct filling *filling = to;
	struct exact_note note = EXACT_NOTE_NONE;
	uint32_t share;

	if (*memo && filling->remembers && sample->scan.weight_us > 0) {
		take_again(filling, sample, *memo);
		return;
	}
	/* samples that are refused have a part of their threads' times, too */
	if (filling->groups->split)
		note = exact_times_add(filling->times, sample);
	if (!filter_accepts(&filling->filter, sample))
		return;
	tally_sample(filling->tally, sample);
	share = group_table_add_noted(filling->groups, sample, note);
	*memo = share == GROUP_NONE ? 0 : (uint64_t)(note.part / TIME_KINDS) << 32 | (share + 1);
	if (exact_times_full(filling->times) || group_table_crowded(filling->groups))
		filling_share_out(filling);
}

static void take_account(void *to, const struct sample *account)
{
	struct filling *filling = to;

	if (!filter_accepts(&filling->filter, account)) {
		if (filling->groups->split)
			exact_times_add_account(filling->times, account);
		return;
	}
	group_table_add_account(filling->groups, account);
	tally_add_account(filling->tally, account);
}

int64_t history_scans(const struct history_scan *scan)
{
	return scan->silent_us ? 1 + ratio(scan->silent_us, 1, scan->weight_us) : 1;
}

static void step_add(struct band_step *step, const struct history_scan *scan)
{
	step->scans += history_scans(scan);
	for (int part = 0; part < BAND_COUNT; part++)
		step->threads[part] += scan->band[part];
}

static void band_scan(void *to, const struct history_scan *scan)
{
	struct band *band = to;
	int64_t at = (scan->time_us - band->from_us) / band->step_us;

	if (scan->time_us < band->from_us || at >= (int64_t)band->count)
		return;
	step_add(&band->steps[at], scan);
}

static void states_scan(void *to, const struct history_scan *scan)
{
	step_add(to, scan);
}

static void states_fill(struct shown *shown)
{
	struct history_visitor visitor = {.scan = states_scan, .to = &shown->states};

	shown->states = (struct band_step){0};
	history_visit(&shown->history, shown->from_us, shown->until_us, &visitor);
}

/* Rounds the length of a step up to one that people count in. */
static int64_t step_nice(int64_t least_us)
{
	static const int64_t lengths_ms[] = {50,    100,   200,	  500,	 1000,	 2000,	 5000,
					     10000, 15000, 30000, 60000, 300000, 900000, 3600000};

	for (size_t i = 0; i < sizeof(lengths_ms) / sizeof(lengths_ms[0]); i++)
		if (lengths_ms[i] * 1000 >= least_us)
			return lengths_ms[i] * 1000;
	return (least_us / 3600000000 + 1) * 3600000000;
}

int64_t history_step_us(const struct history_view *history, size_t steps)
{
	return step_nice((history->last_us - history->first_us) / (int64_t)steps + 1);
}

static void band_fill(struct shown *shown, size_t steps)
{
	const struct history_view *history = &shown->history;
	struct band *band = &shown->band;
	struct history_visitor visitor = {.scan = band_scan, .to = band};

	*band = (struct band){.step_us = 1};
	if (!steps || history->first_us == ABSENT)
		return;
	if (steps > BAND_STEPS_MAX)
		steps = BAND_STEPS_MAX;
	band->step_us = history_step_us(history, steps);
	band->count = steps;
	/* steps begin at whole multiples, so that they don't change as time passes; the last one is
	 * now */
	band->from_us = (history->last_us / band->step_us - (int64_t)steps + 1) * band->step_us;
	history_visit(history, band->from_us, history->last_us + 1, &visitor);
}

static int row_compare(const struct question *question, size_t at, const struct grid *grid,
		       size_t x, size_t y)
{
	const struct column *column = grid->list->items[at];
	union value a = grid_row(grid, x)[at], b = grid_row(grid, y)[at];
	int order = value_compare(column, a, b);

	/* values that are absent are last either way */
	if (value_is_absent(column, a) || value_is_absent(column, b))
		return -order;
	if (!column_is_text(column))
		order = -order; /* large numbers first */
	return question->reversed ? -order : order;
}

struct sorting {
	const struct question *question;
	const struct grid *grid;
	size_t at;
};

static int order_compare(const void *a, const void *b, void *from)
{
	const struct sorting *sorting = from;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = row_compare(sorting->question, sorting->at, sorting->grid, x, y);

	return order ? order : (x > y) - (x < y);
}

/* Sorts anew if only the order has changed. */
static void shown_sort(struct shown *shown, const struct question *question)
{
	struct sorting sorting = {.question = question, .grid = &shown->grid};
	size_t count = shown->grid.row_count;

	shown->order = memory_grow(shown->order, &shown->order_capacity, count, sizeof(size_t));
	for (size_t row = 0; row < count; row++)
		shown->order[row] = question->sort || !question->reversed ? row : count - 1 - row;
	while (sorting.at < shown->list.count && shown->list.items[sorting.at] != question->sort)
		sorting.at++;
	if (count && question->sort && sorting.at < shown->list.count)
		qsort_r(shown->order, count, sizeof(size_t), order_compare, &sorting);
}

static void window_find(struct shown *shown, const struct question *question)
{
	const struct history_view *history = &shown->history;

	shown->until_us = question->until_us;
	if (shown->until_us == ABSENT)
		shown->until_us = history->last_us == ABSENT ? 0 : history->last_us + 1;
	shown->from_us = shown->until_us - question->window_us;
}

/* Kinds of time that are shared out, a bit each. Sleep only if all sleepers are requested, so that
 * all of them are sampled. */
static unsigned int kinds_shared(const struct filter *filter)
{
	unsigned int kinds = 0;

	for (int kind = 0; kind < TIME_KINDS; kind++)
		if (filter_wants_state(filter, time_kind_state(kind)) &&
		    (kind != TIME_ASLEEP || filter->all_states))
			kinds |= 1u << kind;
	return kinds;
}

/* Start of the window's exact times; not before a live history's first scan, whose times lie before
 * it. */
static int64_t times_begin(const struct shown *shown, int64_t from_us)
{
	int64_t first_us = shown->history.first_us;

	if (shown->source.recording)
		return from_us;
	return from_us - ACCOUNT_AGE_US > first_us ? from_us - ACCOUNT_AGE_US : first_us;
}

void window_group(const struct shown *shown, const struct question *question, int64_t until_us,
		  struct group_table *groups, struct exact_times *times, struct tally *tally)
{
	int64_t from_us = until_us - question->window_us;
	struct filling filling = {.groups = groups,
				  .times = times,
				  .tally = tally,
				  .from_us = times_begin(shown, from_us)};
	struct history_visitor visitor = {.scan = take_scan,
					  .account = take_account,
					  .to = &filling,
					  .sample_memo = take_sample};
	struct error e = {0};

	*tally = (struct tally){0};
	exact_times_end_interval(times);
	group_table_init(groups, &shown->list);
	/* the filter was checked when it was typed */
	if (!question_filter(question, &filling.filter, &e)) {
		times->shared = kinds_shared(&filling.filter);
		group_table_split(groups, times,
				  filter_keeps_threads(&filling.filter) ? REST_LARGE_GROUPS
									: REST_LEFT_OUT);
		filling.remembers = filling_remembers(&filling);
		history_visit(&shown->history, from_us, until_us, &visitor);
	}
	group_table_share_out(groups);
	group_table_end_interval(groups, tally);
	error_done(&e);
	filter_done(&filling.filter);
}

/* Subtracts the rows of the question's second window. */
static void mark_subtract(struct shown *shown, const struct question *question)
{
	struct exact_times times = {0};
	struct group_table groups;
	struct grid before = {0};

	window_group(shown, question, question->mark_us, &groups, &times, &shown->marked);
	grid_fill_groups(&before, &groups, &shown->marked);
	grid_subtract(&shown->grid, &before);
	grid_done(&before);
	group_table_done(&groups);
	exact_times_done(&times);
}

void shown_fill(struct shown *shown, struct history *history, const struct question *question,
		size_t band_steps)
{
	history_look(history, &shown->history);
	window_find(shown, question);
	if (shown->grouped)
		group_table_done(&shown->groups);
	shown->list = question->list;
	window_group(shown, question, shown->until_us, &shown->groups, &shown->times,
		     &shown->tally);
	shown->grouped = true;
	grid_fill_groups(&shown->grid, &shown->groups, &shown->tally);
	shown->marked = (struct tally){0};
	if (question->mark_us != ABSENT)
		mark_subtract(shown, question);
	shown_sort(shown, question);
	shown->answer++;
	states_fill(shown);
	band_fill(shown, band_steps);
}

void shown_done(struct shown *shown)
{
	if (shown->grouped)
		group_table_done(&shown->groups);
	exact_times_done(&shown->times);
	grid_done(&shown->grid);
	free(shown->order);
	history_view_done(&shown->history);
	tree_done(&shown->tree);
	tree_done(&shown->peek.stacks);
	finding_lines_done(&shown->findings);
	*shown = (struct shown){0};
}

const union value *shown_row(const struct shown *shown, size_t row)
{
	return grid_row(&shown->grid, shown->order[row]);
}

void shown_add_value(struct text *text, const struct column *column, union value value)
{
	if (value_is_absent(column, value))
		text_add_char(text, '-');
	else if (column->kind == KIND_NS)
		text_add_duration(text, value.number);
	else
		value_add(text, column, value);
	if (column->kind == KIND_PERMILLE && !value_is_absent(column, value))
		text_add_char(text, '%');
}
