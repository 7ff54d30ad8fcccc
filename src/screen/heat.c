/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heat map: all samples of the history that pass the filter, by time and by how long their
 * state had lasted, or by the number of such threads in the scan. */
#include "screen/shown.h"
#include "screen/list.h"
#include "screen/view_event.h"
#include "report/value.h"

#include <string.h>

static const int64_t bounds_us[] = {0,	      100,	 300,	    1000,      3000,	10000,
				    30000,    100000,	 300000,    1000000,   3000000, 10000000,
				    30000000, 100000000, 300000000, 1000000000};
static const int64_t bounds_threads[] = {1,  2,	 3,   4,   5,	7,   10,  15,  20,   30,
					 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000};

#define ROWS(bounds) (sizeof(bounds) / sizeof((bounds)[0]))
_Static_assert(ROWS(bounds_us) <= HEAT_ROWS_MAX && ROWS(bounds_threads) <= HEAT_ROWS_MAX,
	       "a row for each");

size_t heat_rows(bool of_threads)
{
	return of_threads ? ROWS(bounds_threads) : ROWS(bounds_us);
}

int64_t heat_bound(bool of_threads, size_t row)
{
	if (row >= heat_rows(of_threads))
		return ABSENT;
	return of_threads ? bounds_threads[row] : bounds_us[row];
}

struct heating {
	struct heat *heat;
	struct filter filter;
	int64_t time_us, threads; /* scan's time, and number of threads that pass the filter */
};

/* The last row that begins at or below the number; SIZE_MAX: none. */
static size_t row_of(bool of_threads, int64_t number)
{
	size_t row = heat_rows(of_threads);

	while (row && heat_bound(of_threads, row - 1) > number)
		row--;
	return row - 1;
}

static void cell_add(struct heat *heat, int64_t time_us, int64_t number, int64_t samples)
{
	size_t row = row_of(heat->of_threads, number);
	int64_t column = (time_us - heat->from_us) / heat->step_us;

	if (row == SIZE_MAX || time_us < heat->from_us || column >= (int64_t)heat->columns)
		return;
	heat->cells[row][column] += samples;
}

static void scan_end(struct heating *heating)
{
	if (heating->heat->of_threads && heating->threads)
		cell_add(heating->heat, heating->time_us, heating->threads, heating->threads);
	heating->threads = 0;
}

static void heat_scan(void *to, const struct history_scan *scan)
{
	struct heating *heating = to;

	scan_end(heating);
	heating->time_us = scan->time_us;
}

static void heat_sample(void *to, const struct sample *sample)
{
	struct heating *heating = to;

	if (!filter_accepts(&heating->filter, sample))
		return;
	heating->threads++;
	if (!heating->heat->of_threads && sample->now.state_us != ABSENT)
		cell_add(heating->heat, sample->scan.time_us, sample->now.state_us, 1);
}

/* Moves the map's columns to the newest scan: cells that are still in the map keep their counts;
 * where that is not possible, all counts begin anew. */
static void heat_move(struct heat *heat, const struct history_view *history, bool anew)
{
	int64_t step_us = history_step_us(history, heat->columns);
	int64_t from_us = (history->last_us / step_us - (int64_t)heat->columns + 1) * step_us;
	int64_t steps = (from_us - heat->from_us) / step_us;
	size_t kept;

	if (anew || step_us != heat->step_us || steps < 0 || steps > (int64_t)heat->columns ||
	    heat->seen.until_us + SEEN_GAP_US <= history->last_us) {
		heat->seen = history_seen_none(history);
		steps = (int64_t)heat->columns;
	}
	kept = heat->columns - (size_t)steps;
	for (size_t row = 0; row < heat->rows; row++) {
		int64_t *cells = heat->cells[row];

		memmove(cells, cells + steps, kept * sizeof(*cells));
		memset(cells + kept, 0, (size_t)steps * sizeof(*cells));
	}
	heat->step_us = step_us;
	heat->from_us = from_us;
}

static void most_find(struct heat *heat)
{
	heat->most = 0;
	for (size_t row = 0; row < heat->rows; row++)
		for (size_t column = 0; column < heat->columns; column++)
			if (heat->cells[row][column] > heat->most)
				heat->most = heat->cells[row][column];
}

static void heat_fill(struct heat *heat, const struct shown *shown, const struct view *view,
		      bool anew)
{
	const struct history_view *history = &shown->history;
	struct heating heating = {.heat = heat};
	struct history_visitor visitor = {.scan = heat_scan, .sample = heat_sample, .to = &heating};
	struct error e = {0};

	heat->of_threads = view->heat_of_threads;
	heat->rows = heat_rows(heat->of_threads);
	heat->columns = heat->most = 0;
	if (history->first_us == ABSENT || shown->band.count <= LIST_NAME_WIDTH) {
		heat->step_us = 0;
		return;
	}
	/* the band begins further to the left than the items of a list */
	heat->columns = shown->band.count + BAND_LABEL_WIDTH - LIST_NAME_WIDTH;
	heat_move(heat, history, anew);
	if (!question_filter(&view->now, &heating.filter, &e))
		history_visit_part(history, &heat->seen, heat->from_us, &visitor);
	scan_end(&heating);
	most_find(heat);
	error_done(&e);
	filter_done(&heating.filter);
}

void shown_heat(struct shown *shown, const struct view *view)
{
	struct heat *heat = &shown->heat;
	bool anew = heat->of_threads != view->heat_of_threads ||
		    question_differs(&heat->question, &view->now) ||
		    heat->band_count != shown->band.count;

	if (!anew && heat->answer == shown->answer)
		return;
	heat->answer = shown->answer;
	heat->question = view->now;
	heat->band_count = shown->band.count;
	heat_fill(heat, shown, view, anew);
}
