/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/list.h"
#include "screen/command.h"
#include "screen/key.h"

#include <string.h>

void list_open(struct view *view, const struct list_kind *kind)
{
	view->list = (struct list){.kind = kind};
}

void list_fill(struct shown *shown, const struct view *view)
{
	if (view->list.kind && view->list.kind->fill)
		view->list.kind->fill(shown, view);
}

static bool item_matches(const struct view *view, const struct shown *shown, size_t item)
{
	struct text name = {0}, help = {0};
	bool matches;

	if (!view->list.words[0])
		return true;
	view->list.kind->item(view, shown, item, &name, &help);
	matches = strcasestr(text_string(&name), view->list.words) ||
		  strcasestr(text_string(&help), view->list.words);
	text_done(&name);
	text_done(&help);
	return matches;
}

size_t list_item_at(const struct view *view, const struct shown *shown, size_t at)
{
	size_t count = view->list.kind->count(view, shown);

	for (size_t item = 0; item < count; item++)
		if (item_matches(view, shown, item) && !at--)
			return item;
	return SIZE_MAX;
}

size_t list_matches(const struct view *view, const struct shown *shown)
{
	size_t count = view->list.kind->count(view, shown), matches = 0;

	for (size_t item = 0; item < count; item++)
		matches += item_matches(view, shown, item);
	return matches;
}

static void cursor_move(struct view *view, const struct shown *shown, int64_t by)
{
	int64_t last = (int64_t)list_matches(view, shown) - 1, at = (int64_t)view->list.at + by;

	view->list.at = at > last ? (size_t)(last < 0 ? 0 : last) : at < 0 ? 0 : (size_t)at;
}

static void choose(struct view *view, const struct shown *shown)
{
	const struct list_kind *kind = view->list.kind;
	size_t item = list_item_at(view, shown, view->list.at);

	if (item == SIZE_MAX)
		return;
	if (!kind->stays)
		view->list.kind = NULL;
	if (kind->choose)
		kind->choose(view, shown, item);
}

void list_add_detail(struct text *text, struct view *view, const struct shown *shown)
{
	const struct list_kind *kind = view->list.kind;
	size_t matches = list_matches(view, shown), item;
	struct text name = {0};

	/* items may have gone */
	if (view->list.at >= matches)
		view->list.at = matches ? matches - 1 : 0;
	item = list_item_at(view, shown, view->list.at);
	if (item == SIZE_MAX)
		return;
	if (kind->detail)
		kind->detail(view, shown, item, text);
	else
		kind->item(view, shown, item, &name, text);
	text_done(&name);
}

/* Moves the cursor as the command moves that of the table; false: it does not. */
static bool move_as(struct view *view, const struct shown *shown, const struct command *command)
{
	int64_t page = view->page_rows ? (int64_t)view->page_rows : 1;

	if (command->run == command_row)
		cursor_move(view, shown, command->by);
	else if (command->run == command_page)
		cursor_move(view, shown, command->by * page);
	else if (command->run == command_end)
		cursor_move(view, shown, command->by * INT32_MAX);
	else
		return false;
	return true;
}

/* Runs the command that the key runs at the table. */
static void command_key(struct view *view, const struct shown *shown, int32_t key)
{
	size_t at = bindings_command(&view->bindings, key);
	const struct command *command;

	if (at >= command_count)
		return;
	command = &commands[at];
	if (command->run == command_find) {
		view->list.typing = true;
	} else if (command->of_cell) {
		view_say(view, true, "%s is of the table: Esc shows it", command->name);
	} else if (!move_as(view, shown, command)) {
		command->run(view, shown, command->by);
	}
}

/* Searches the items by typed letters. */
static void word_type(struct view *view, int32_t key)
{
	struct list *list = &view->list;
	size_t length = strlen(list->words);

	if (key == KEY_CODE_BACKSPACE && length)
		list->words[length - 1] = '\0';
	else if (key >= ' ' && key < 127 && length + 1 < sizeof(list->words))
		list->words[length] = (char)key;
	else
		return;
	list->at = list->top = 0;
}

void list_key(struct view *view, const struct shown *shown, int32_t key)
{
	int64_t page = view->page_rows ? (int64_t)view->page_rows : 1;
	const struct list_kind *kind = view->list.kind;

	if (!view->list.typing && kind->key &&
	    kind->key(view, shown, list_item_at(view, shown, view->list.at), key))
		return;
	if (view->list.typing && (key == KEY_CODE_ENTER || key == KEY_CODE_ESCAPE)) {
		view->list.typing = false;
		if (key == KEY_CODE_ESCAPE)
			view->list.words[0] = '\0';
		return;
	}
	switch (key) {
	case KEY_CODE_ESCAPE:
	case 3: /* Ctrl-C */
		view->list.kind = NULL;
		return;
	case KEY_CODE_ENTER:
		choose(view, shown);
		return;
	case KEY_CODE_UP:
		cursor_move(view, shown, -1);
		return;
	case KEY_CODE_DOWN:
		cursor_move(view, shown, 1);
		return;
	case KEY_CODE_PAGE_UP:
		cursor_move(view, shown, -page);
		return;
	case KEY_CODE_PAGE_DOWN:
		cursor_move(view, shown, page);
		return;
	case KEY_CODE_HOME:
		view->list.at = 0;
		return;
	case KEY_CODE_END:
		cursor_move(view, shown, INT32_MAX);
		return;
	default:
		if (kind->keys && !view->list.typing)
			command_key(view, shown, key);
		else
			word_type(view, key);
	}
}
