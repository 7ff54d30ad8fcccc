/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole of the value under the cursor, in lines as wide as the screen: there are paths of 4096
 * bytes, and stacks that are longer.
 */
#include "screen/command.h"
#include "screen/draw.h"
#include "screen/list.h"

#include <string.h>

static void add_value(struct text *text, const struct view *view, const struct shown *shown)
{
	if (view->row < shown->grid.row_count && view->column < shown->list.count)
		shown_add_value(text, shown->list.items[view->column],
				shown_row(shown, view->row)[view->column]);
}

/* Skips up to `lines` lines of the text; returns the number skipped. */
static size_t lines_pass(const struct view *view, const char **at, size_t lines)
{
	size_t columns = view->positions.columns ? view->positions.columns : SCREEN_COLUMNS_LEAST;
	size_t count = 0;

	for (; **at && count < lines; count++)
		*at += text_fit(*at, columns);
	return count;
}

static size_t value_count(const struct view *view, const struct shown *shown)
{
	struct text value = {0};
	const char *at;
	size_t count;

	add_value(&value, view, shown);
	at = text_string(&value);
	count = lines_pass(view, &at, SIZE_MAX);
	text_done(&value);
	return count;
}

static void value_item(const struct view *view, const struct shown *shown, size_t item,
		       struct text *name, struct text *help)
{
	struct text value = {0};
	const char *at, *end;

	add_value(&value, view, shown);
	end = at = text_string(&value);
	lines_pass(view, &at, item);
	end = at;
	lines_pass(view, &end, 1);
	text_add(help, at, (size_t)(end - at));
	text_done(&value);
}

static void value_header(const struct view *view, const struct shown *shown, struct text *title)
{
	if (view->column < shown->list.count)
		text_add_format(title, " of %s", shown->list.items[view->column]->name);
}

static void value_detail(const struct view *view, const struct shown *shown, size_t item,
			 struct text *text)
{
}

const struct list_kind list_value = {
	.title = "Lines",
	.hint = "Up and Down scroll, Esc or Enter closes",
	.count = value_count,
	.item = value_item,
	.header = value_header,
	.detail = value_detail,
	.wide = true,
};

void command_value(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->row < shown->grid.row_count)
		list_open(view, &list_value);
}
