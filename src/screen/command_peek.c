/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peeking at a row: its keys become a filter, and a list shows what fits it. */
#include "screen/command.h"
#include "screen/list.h"
#include "report/value.h"

#include <stdio.h>
#include <string.h>

void command_peek(struct view *view, const struct shown *shown)
{
	struct text filter = {0}, title = {0}, condition = {0};
	bool any = false, widens = false;

	if (view->row >= shown->grid.row_count)
		return;
	for (size_t i = 0; i < shown->list.count; i++) {
		const struct column *column = shown->list.items[i];
		union value value = shown_row(shown, view->row)[i];

		if (column->role != ROLE_KEY)
			continue;
		text_add_string(&condition, condition.length ? " && " : "");
		add_condition(&condition, column, value, true);
		text_add_string(&title, title.length ? ", " : "");
		shown_add_value(&title, column, value);
		any = true;
		widens |= condition_widens(column, value, true);
	}
	if (any) {
		add_filter(&filter, &view->now, widens, text_string(&condition));
	} else {
		text_add_string(&filter, view->now.filter);
		text_add_string(&title, "all");
	}
	if (filter.length < sizeof(view->peek)) {
		text_into(view->peek, sizeof(view->peek), text_string(&filter));
		snprintf(view->peek_title, sizeof(view->peek_title), "%s", text_string(&title));
		list_open(view, &list_peek);
	} else {
		view_say(view, true, "The filter would be longer than %d bytes",
			 EXPRESSION_BYTES_MAX);
	}
	text_done(&filter);
	text_done(&title);
	text_done(&condition);
}

static size_t peek_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	return shown->peek.count;
}

static void peek_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	const struct peek_line *line = &shown->peek.lines[item];

	(void)view;
	text_add_string(name, line->column->name);
	text_add_decimals(help, line->avg_thr, 2);
	text_add_format(help, "%*s", help->length < 7 ? (int)(7 - help->length) : 0, "");
	text_add_decimals(help, line->share, 1);
	text_add_string(help, "%");
	text_add_format(help, "%*s", help->length < 15 ? (int)(15 - help->length) : 1, "");
	shown_add_value(help, line->column, line->value);
}

/* What is under the cursor, kept together with the row. */
static void peek_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct peek_line *line = &shown->peek.lines[item];
	struct text condition = {0}, filter = {0};
	struct ask row = view->now;

	text_into(row.filter, sizeof(row.filter), view->peek);
	add_condition(&condition, line->column, line->value, true);
	add_filter(&filter, &row, condition_widens(line->column, line->value, true),
		   text_string(&condition));
	if (filter.length < sizeof(row.filter))
		text_into(view_step(view, "%s", text_string(&condition))->filter, VIEW_INPUT_SIZE,
			  text_string(&filter));
	view->row = view->top = 0;
	text_done(&condition);
	text_done(&filter);
}

/* Space leaves the value out of all that is shown; p closes. */
static bool peek_key(struct view *view, const struct shown *shown, size_t item, int32_t key)
{
	const struct peek_line *line;
	struct text condition = {0};

	if (key == 'p')
		view->list.kind = NULL;
	if (key != ' ' || item == SIZE_MAX)
		return key == 'p' || key == ' ';
	line = &shown->peek.lines[item];
	add_condition(&condition, line->column, line->value, false);
	if (ask_keep(view, condition_widens(line->column, line->value, false),
		     text_string(&condition)))
		view->list.kind = NULL;
	text_done(&condition);
	return true;
}

const struct list_kind list_peek = {
	.title = "In this row",
	.hint = "Enter keeps this row and value, Space leaves the value out, letters search, p "
		"closes",
	.count = peek_count,
	.item = peek_item,
	.choose = peek_choose,
	.half = true,
	.fill = shown_peek,
	.key = peek_key,
};
