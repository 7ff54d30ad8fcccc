/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/view_event.h"
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "screen/saved.h"

#define WHEEL_ROWS 3

void view_key(struct view *view, const struct shown *shown, int32_t key)
{
	bool of_view = key >= '1' && key <= '9';
	size_t command;
	struct text name = {0};

	view->message[0] = '\0';
	view->failed = false;
	if (view->prompt.kind) {
		prompt_key(view, shown, key);
		return;
	}
	if (view->list.kind && !(of_view && view->list.kind->keys && !view->list.typing)) {
		list_key(view, shown, key);
		return;
	}
	if (of_view) {
		if (view_choose(view, shown, (size_t)(key - '1')))
			view->list.kind = NULL;
		else
			view_say_key(view, true, command_views,
				     "There is no such view: %s lists all");
		return;
	}
	command = bindings_command(&view->bindings, key);
	if (command < command_count) {
		commands[command].run(view, shown, commands[command].by);
	} else if (key != KEY_CODE_ESCAPE) {
		key_add(&name, key);
		text_add_string(&name, " does nothing: ");
		add_key_of(&name, view, command_help);
		view_say(view, true, "The key %s lists all keys", text_string(&name));
	}
	text_done(&name);
}

/* Moves the cursor of what is open by the wheel. */
static void mouse_wheel(struct view *view, const struct shown *shown, int way)
{
	int32_t key = way < 0 ? KEY_CODE_UP : KEY_CODE_DOWN;

	for (int i = 0; i < WHEEL_ROWS; i++)
		view_key(view, shown, key);
}

/* The table's column at that column of the screen; SIZE_MAX: none. */
static size_t column_at(const struct positions *positions, size_t column)
{
	size_t at = SIZE_MAX;

	for (size_t i = 0; i < positions->count && positions->lefts[i] <= column; i++)
		at = positions->first + i;
	return at;
}

static void band_click(struct view *view, const struct shown *shown, size_t column)
{
	const struct band *band = &shown->band;
	size_t step = column - view->positions.band_left;

	if (column < view->positions.band_left || step >= band->count ||
	    band->from_us + (int64_t)(step + 1) * band->step_us <= shown->history.first_us)
		return;
	view_step(view, "click")->until_us =
		band->from_us + (int64_t)step * band->step_us + view->now.window_us;
}

/* Goes back to the step that was clicked. */
static void steps_click(struct view *view, size_t column)
{
	const struct positions *positions = &view->positions;
	size_t step = 0;

	while (step < positions->step_count && column >= positions->steps[step])
		step++;
	if (step < positions->step_count)
		while (view->undo_count > step)
			view_undo(view);
}

static void table_click(struct view *view, const struct shown *shown, const struct mouse *mouse)
{
	const struct positions *positions = &view->positions;
	size_t row = view->top + mouse->row - positions->table_top;
	size_t column = column_at(positions, mouse->column);

	if (row < shown->grid.row_count)
		view->row = row;
	if (column < view->now.list.count)
		view->column = column;
}

/* Chooses a clicked item that is under the cursor; moves the cursor to another one. */
static void list_click(struct view *view, const struct shown *shown, size_t row)
{
	size_t at = view->list.top + row - view->positions.list_top;

	if (at == view->list.at)
		view_key(view, shown, KEY_CODE_ENTER);
	else if (at < list_matches(view, shown))
		view->list.at = at;
}

static bool is_within(size_t row, size_t top, size_t rows)
{
	return row >= top && row < top + rows;
}

void view_mouse(struct view *view, const struct shown *shown, const struct mouse *mouse)
{
	const struct positions *positions = &view->positions;
	size_t column;

	if (mouse->wheel) {
		mouse_wheel(view, shown, mouse->wheel);
		return;
	}
	if (view->prompt.kind)
		return;
	view->message[0] = '\0';
	if (view->list.kind) {
		if (is_within(mouse->row, positions->list_top, positions->list_rows))
			list_click(view, shown, mouse->row);
	} else if (is_within(mouse->row, positions->findings_top, positions->findings_rows)) {
		finding_choose(view, shown, mouse->row - positions->findings_top);
	} else if (is_within(mouse->row, positions->band_top, positions->band_rows)) {
		band_click(view, shown, mouse->column);
	} else if (positions->step_count && mouse->row == positions->steps_row) {
		steps_click(view, mouse->column);
	} else if (positions->count && mouse->row == positions->title_row) {
		column = column_at(positions, mouse->column);
		if (column < view->now.list.count)
			question_sort_by(view, view->now.list.items[column]);
	} else if (is_within(mouse->row, positions->table_top, positions->table_rows)) {
		table_click(view, shown, mouse);
	}
}
