/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that move the cursor. */
#include "screen/command.h"
#include "screen/prompt.h"

#include <string.h>

void command_row(struct view *view, const struct shown *shown, int64_t by)
{
	int64_t last = (int64_t)shown->grid.row_count - 1, row = (int64_t)view->row + by;

	view->row = row > last ? (size_t)(last < 0 ? 0 : last) : row < 0 ? 0 : (size_t)row;
}

void command_page(struct view *view, const struct shown *shown, int64_t by)
{
	command_row(view, shown, by * (int64_t)(view->page_rows ? view->page_rows : 1));
}

void command_end(struct view *view, const struct shown *shown, int64_t by)
{
	command_row(view, shown, by * (int64_t)(view->row + shown->grid.row_count));
}

void command_left(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->column)
		view->column--;
}

void command_right(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->column + 1 < view->now.list.count)
		view->column++;
	else
		command_peek(view, shown, 0);
}

/* The first column of the row that has the words; SIZE_MAX: none. */
static size_t find_in_row(const struct view *view, const struct shown *shown, size_t row)
{
	struct text cell = {0};
	size_t found = SIZE_MAX;

	for (size_t i = 0; found == SIZE_MAX && i < shown->list.count; i++) {
		text_clear(&cell);
		shown_add_value(&cell, shown->list.items[i], shown_row(shown, row)[i]);
		if (strcasestr(text_string(&cell), view->find))
			found = i;
	}
	text_done(&cell);
	return found;
}

void command_find_again(struct view *view, const struct shown *shown, int64_t by)
{
	size_t count = shown->grid.row_count;

	if (!view->find[0]) {
		view_say_key(view, true, command_find, "Nothing to find yet: %s asks for words");
		return;
	}
	for (size_t step = 1; step <= count; step++) {
		size_t row = (view->row + (by > 0 ? step : count - step)) % count;
		size_t column = find_in_row(view, shown, row);

		if (column == SIZE_MAX)
			continue;
		view->row = row;
		view->column = column;
		return;
	}
	view_say(view, true, "No cell has '%s'", view->find);
}

static bool find_done(struct view *view, const struct shown *shown)
{
	text_into(view->find, sizeof(view->find), view->prompt.text);
	if (view->find[0])
		command_find_again(view, shown, 1);
	return true;
}

static const struct prompt_kind prompt_find = {"Find: ", find_done, NULL};

void command_find(struct view *view, const struct shown *shown, int64_t by)
{
	prompt_open(view, &prompt_find, "");
}
