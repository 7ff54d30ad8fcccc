/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a row is made of: the row's samples once more, grouped by one column after the other. */
#include "screen/shown.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_MOST 8 /* of a column */

static const char *const peek_columns[] = {
	"tid",	  "comm",     "state",	    "syscall",	 "filename", "connection",
	"why",	  "waits_on", "waker_comm", "waker_tid", "unit",     "container",
	"ufuncs", "kfuncs",   "io_dev",	    "cpu",
};
#define PEEK_COLUMNS (sizeof(peek_columns) / sizeof(peek_columns[0]))

struct peeking {
	struct filter filter;
	struct column_list lists[PEEK_COLUMNS + 1]; /* the last one has no key */
	struct group_table groups[PEEK_COLUMNS + 1];
	struct tally tally;
};

static void peek_scan(void *to, const struct history_scan *scan)
{
	struct peeking *peeking = to;

	tally_add(&peeking->tally,
		  &(struct scan){.time_us = scan->time_us, .weight_us = scan->weight_us});
}

static void peek_sample(void *to, const struct sample *sample)
{
	struct peeking *peeking = to;

	if (!filter_accepts(&peeking->filter, sample))
		return;
	peeking->tally.samples++;
	for (size_t i = 0; i <= PEEK_COLUMNS; i++)
		group_table_add(&peeking->groups[i], sample);
}

static void peek_account(void *to, const struct sample *account)
{
	struct peeking *peeking = to;

	if (filter_accepts(&peeking->filter, account))
		group_table_add_account(&peeking->groups[PEEK_COLUMNS], account);
}

/* The column's values; nothing of one that all samples lack. */
static void lines_add(struct peek *peek, const struct peeking *peeking, size_t at,
		      struct grid *grid)
{
	const struct column *column = peeking->lists[at].items[0];

	grid_fill_groups(grid, &peeking->groups[at], &peeking->tally);
	if (grid->row_count == 1 && value_is_absent(column, grid_row(grid, 0)[0]))
		return;
	for (size_t row = 0; row < grid->row_count && row < VALUES_MOST; row++) {
		const union value *values = grid_row(grid, row);

		if (peek->count == PEEK_LINES_MAX)
			return;
		peek->lines[peek->count++] =
			(struct peek_line){column, values[0], values[1].number, values[2].number};
	}
}

/* Whether the column is one of the table's, so that the row has just one value of it. */
static bool is_asked(const struct ask *ask, const struct column *column)
{
	for (size_t i = 0; i < ask->list.count; i++)
		if (ask->list.items[i] == column)
			return true;
	return false;
}

static void peek_fill(struct peek *peek, const struct shown *shown, const struct ask *ask)
{
	struct peeking *peeking = memory_get(sizeof(*peeking));
	struct history_visitor visitor = {peek_scan, peek_sample, peek_account, peeking};
	struct group_table *all = &peeking->groups[PEEK_COLUMNS];
	struct error e = {0};
	struct grid grid = {0};

	for (size_t i = 0; i <= PEEK_COLUMNS; i++) {
		struct column_list *list = &peeking->lists[i];

		if (i < PEEK_COLUMNS)
			column_list_add(list, peek_columns[i], true, &e);
		column_list_add(list, i < PEEK_COLUMNS ? "avg_thr,share" : "cpu_s,runq_s", true,
				&e);
		group_table_init(&peeking->groups[i], list);
	}
	if (!ask_filter(ask, &peeking->filter, &e))
		history_visit(&shown->history, shown->from_us, shown->until_us, &visitor);
	error_done(&e);
	peek->count = 0;
	peek->tally = peeking->tally;
	for (size_t i = 0; i < PEEK_COLUMNS; i++)
		if (!is_asked(ask, peeking->lists[i].items[0]))
			lines_add(peek, peeking, i, &grid);
	peek->exact =
		measures_of(peeking->tally.samples, 0,
			    all->count ? group_sums(all, group_at(all, 0)) : NULL, &peeking->tally);
	if (!all->count || !group_sums(all, group_at(all, 0)))
		peek->exact.cpu_s = peek->exact.runq_s = peek->exact.dwait_s = peek->exact.sleep_s =
			ABSENT;
	grid_done(&grid);
	filter_done(&peeking->filter);
	for (size_t i = 0; i <= PEEK_COLUMNS; i++)
		group_table_done(&peeking->groups[i]);
	free(peeking);
}

void shown_peek(struct shown *shown, const struct view *view)
{
	struct peek *peek = &shown->peek;
	struct ask ask;

	if (peek->answer == shown->answer && !strcmp(peek->filter, view->peek))
		return;
	ask = view->now;
	text_into(ask.filter, sizeof(ask.filter), view->peek);
	text_into(peek->filter, sizeof(peek->filter), view->peek);
	peek->answer = shown->answer;
	peek_fill(peek, shown, &ask);
}
