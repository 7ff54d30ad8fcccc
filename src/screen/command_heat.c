/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heat map (h): a list whose items are lengths of time, or numbers of threads, with a cursor on
 * a step of time.
 */
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "base/clock.h"
#include "report/value.h"

#include <string.h>

void command_heat(struct view *view, const struct shown *shown)
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

static size_t heat_count(const struct view *view, const struct shown *shown)
{
	(void)shown;
	return heat_rows(view->heat_of_threads);
}

/* Row of the map for a list item: long times are at the top. */
static size_t row_of(const struct shown *shown, size_t item)
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
	size_t row = row_of(shown, item);

	(void)view;
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
	size_t row = row_of(shown, item);
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
		question = question_keep(view, false, text_string(&condition)) ? &view->now : NULL;
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

	(void)item;
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

	(void)view;
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
	size_t row = row_of(shown, item);
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

const struct list_kind list_heat = {
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
