/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heat map (h): all samples of the history that pass the filter, by time and by how long their
 * state had lasted, or by the number of such threads in the scan. It is a list of lengths of time,
 * or numbers of threads, with a cursor on a step of time. */
#include "screen/shown.h"
#include "screen/list.h"
#include "screen/view.h"
#include "report/value.h"
#include "screen/command.h"
#include "screen/key.h"
#include "base/clock.h"

#include <string.h>

static const int64_t bounds_us[] = {0,	      100,	 300,	    1000,      3000,	10000,
				    30000,    100000,	 300000,    1000000,   3000000, 10000000,
				    30000000, 100000000, 300000000, 1000000000};
static const int64_t bounds_threads[] = {1,  2,	 3,   4,   5,	7,   10,  15,  20,   30,
					 50, 70, 100, 150, 200, 300, 500, 700, 1000, 2000};

#define ROWS(bounds) (sizeof(bounds) / sizeof((bounds)[0]))
_Static_assert(ROWS(bounds_us) <= HEAT_ROWS_MAX && ROWS(bounds_threads) <= HEAT_ROWS_MAX,
	       "a row for each");

static size_t heat_rows(bool of_threads)
{
	return of_threads ? ROWS(bounds_threads) : ROWS(bounds_us);
}

/* Least value of a row; ABSENT for the row after the last one: no limit. */
static int64_t heat_bound(bool of_threads, size_t row)
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
	heating->threads += sample_scans(sample);
	if (!heating->heat->of_threads && sample->now.state_us != ABSENT)
		cell_add(heating->heat, sample->scan.time_us, sample->now.state_us,
			 sample_scans(sample));
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

/* Fills the map, if that was not done yet. */
static void shown_heat(struct shown *shown, const struct view *view)
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

static size_t heat_count(const struct view *view, const struct shown *shown)
{
	return heat_rows(view->heat_of_threads);
}

/* Row of the map for a list item: long times are at the top. */
static size_t row_of_item(const struct shown *shown, size_t item)
{
	return shown->heat.rows - 1 - item;
}

static size_t column_of(const struct view *view, const struct shown *shown)
{
	const struct heat *heat = &shown->heat;
	int64_t column = heat->columns ? (view->heat_us - heat->from_us) / heat->step_us : 0;

	return column < 0 || view->heat_us < heat->from_us ? 0
	       : column >= (int64_t)heat->columns	   ? heat->columns - !!heat->columns
							   : (size_t)column;
}

static void add_bounds(struct text *text, const struct heat *heat, size_t row)
{
	int64_t least = heat_bound(heat->of_threads, row);
	int64_t end = heat_bound(heat->of_threads, row + 1);

	if (heat->of_threads) {
		text_add_number(text, least);
		if (end == ABSENT)
			text_add_string(text, " threads or more");
		else if (end - 1 > least)
			text_add_format(text, " to %lld threads", (long long)end - 1);
		else
			text_add_string(text, least == 1 ? " thread" : " threads");
	} else if (end == ABSENT) {
		text_add_duration(text, least * NS_PER_US);
		text_add_string(text, " or more");
	} else {
		text_add_string(text, "under ");
		text_add_duration(text, end * NS_PER_US);
	}
}

static void heat_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	const struct heat *heat = &shown->heat;
	size_t row = row_of_item(shown, item);

	add_bounds(name, heat, row);
	for (size_t column = 0; column < heat->columns; column++)
		text_add_char(help, shade_of(heat->cells[row][column], heat->most));
}

static int64_t cell_from_us(const struct view *view, const struct shown *shown)
{
	return shown->heat.from_us + (int64_t)column_of(view, shown) * shown->heat.step_us;
}

/* Makes the cell's time the window, and keeps only samples whose state had lasted as long as the
 * cell's row says. */
static void heat_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct heat *heat = &shown->heat;
	size_t row = row_of_item(shown, item);
	int64_t from_us = cell_from_us(view, shown), end = heat_bound(heat->of_threads, row + 1);
	struct text condition = {0};
	struct question *question;

	if (!heat->columns || !heat->cells[row][column_of(view, shown)]) {
		view_say(view, true, "No sample is in this cell");
		return;
	}
	text_add_format(&condition, "state_us>=%lld", (long long)heat_bound(heat->of_threads, row));
	if (end != ABSENT)
		text_add_format(&condition, " && state_us<%lld", (long long)end);
	if (heat->of_threads)
		question = view_step(view, "cell");
	else
		question = question_keep(view, view->now.filter, false, text_string(&condition))
				   ? &view->now
				   : NULL;
	if (question) {
		question->until_us = from_us + heat->step_us;
		question->window_us = heat->step_us;
		view->row = view->top = 0;
		view->list.kind = NULL;
	}
	text_done(&condition);
}

/* h: the other map; Left and Right move in time. */
static bool heat_key(struct view *view, const struct shown *shown, size_t item, int32_t key)
{
	const struct heat *heat = &shown->heat;
	int64_t step = key == KEY_CODE_LEFT ? -1 : 1;
	int64_t column = (int64_t)column_of(view, shown) + step;

	if (key == 'h') {
		view->heat_of_threads = !view->heat_of_threads;
		view->list.at = heat_rows(view->heat_of_threads) - 1;
	} else if (key == KEY_CODE_LEFT || key == KEY_CODE_RIGHT) {
		if (column >= 0 && column < (int64_t)heat->columns)
			view->heat_us = heat->from_us + column * heat->step_us;
	} else {
		/* letters don't search here */
		return key >= ' ' && key < KEY_CODE_UP && key != KEY_CODE_BACKSPACE;
	}
	return true;
}

static void heat_header(const struct view *view, const struct shown *shown, struct text *title)
{
	const struct heat *heat = &shown->heat;
	char from[CLOCK_LOCAL_SIZE];

	if (!heat->columns)
		return;
	clock_format_local(heat->from_us, from);
	text_add_string(title, heat->of_threads ? " of threads in a scan" : " of state_us");
	if (!heat->most) {
		text_add_string(title, ": no sample of this filter has it; h: the other map");
		return;
	}
	text_add_format(title, " from %.8s on, ", from + CLOCK_LOCAL_TIME);
	text_add_duration(title, heat->step_us * NS_PER_US);
	text_add_format(title, " a sign; @: %lld samples", (long long)heat->most);
}

/* Describes the cell of the map under the cursor. */
static void heat_detail(const struct view *view, const struct shown *shown, size_t item,
			struct text *text)
{
	const struct heat *heat = &shown->heat;
	size_t row = row_of_item(shown, item);
	int64_t from_us = cell_from_us(view, shown);
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];

	if (!heat->columns)
		return;
	clock_format_local(from_us, from);
	clock_format_local(from_us + heat->step_us, until);
	text_add_format(text, "%.12s to %.12s, ", from + CLOCK_LOCAL_TIME,
			until + CLOCK_LOCAL_TIME);
	add_bounds(text, heat, row);
	text_add_format(text, ": %lld samples",
			(long long)heat->cells[row][column_of(view, shown)]);
}

static size_t heat_cursor(const struct view *view, const struct shown *shown)
{
	return column_of(view, shown);
}

static const struct list_kind list_heat = {
	.title = "Heat map",
	.hint = "Left and Right: time, Enter keeps this time and duration, h: the other map, Esc "
		"closes",
	.count = heat_count,
	.item = heat_item,
	.choose = heat_choose,
	.stays = true,
	.fill = shown_heat,
	.header = heat_header,
	.detail = heat_detail,
	.cursor = heat_cursor,
	.key = heat_key,
};

void command_heat(struct view *view, const struct shown *shown, int64_t by)
{
	if (shown->history.first_us == ABSENT) {
		view_say(view, true, "There is no scan yet");
		return;
	}
	list_open(view, &list_heat);
	/* the cursor begins at the window's first step, and at the shortest durations */
	view->heat_us =
		shown->from_us > shown->history.first_us ? shown->from_us : shown->history.last_us;
	view->list.at = heat_rows(view->heat_of_threads) - 1;
}
