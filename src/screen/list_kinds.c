/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kinds of lists: columns, columns to sort by, commands, views, formats. */
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "screen/saved.h"
#include "report/measure.h"
#include "sample/needs_table.h"

#include <string.h>

/* --- columns: measures, then all columns of samples */

static const struct column *column_of_item(size_t item)
{
	return item < measure_column_count ? &measure_columns[item]
					   : &sample_columns[item - measure_column_count];
}

static size_t columns_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	(void)shown;
	return measure_column_count + sample_column_count;
}

/* Adds the source of the column's values and their cost: "(file: when sampled)". */
static void add_cost(struct text *help, const struct column *column)
{
	for (size_t i = needs_row_count; i--;)
		if (needs_rows[i].need && needs_rows[i].need & column->needs) {
			text_add_format(help, " (%s: %s)", needs_rows[i].name,
					needs_cost_names[needs_rows[i].cost]);
			return;
		}
}

static void columns_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
	const struct column *column = column_of_item(item);
	const char *why;

	(void)view;
	text_add_string(name, column->name);
	text_add_string(help, column->help);
	add_cost(help, column);
	if (!column_is_there(shown, column, &why))
		text_add_format(help, "; %s", *why ? why : "not sampled yet: Enter loads it");
}

static size_t column_position(const struct column_list *list, const struct column *column)
{
	size_t at = 0;

	while (at < list->count && list->items[at] != column)
		at++;
	return at;
}

static bool columns_marked(const struct view *view, const struct shown *shown, size_t item)
{
	(void)shown;
	return column_position(&view->now.list, column_of_item(item)) < view->now.list.count;
}

static void columns_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct column *column = column_of_item(item);
	size_t at = column_position(&view->now.list, column);
	struct error e = {0};
	const char *why;

	if (at < view->now.list.count) {
		view->column = at;
		command_column_drop(view, shown);
		return;
	}
	if (!column_is_there(shown, column, &why)) {
		if (*why) {
			view_say(view, true, "%s is %s", column->name, why);
			return;
		}
		view_load(view, shown, column->needs, false);
		view_say(view, false, "%s is sampled from now on", column->name);
	}
	column_list_add(&view_step(view, "+%s", column->name)->list, column->name, true, &e);
	error_done(&e);
	view->column = view->now.list.count - 1;
}

const struct list_kind list_columns = {
	.title = "Columns",
	.hint = "Enter adds or removes, letters search, Esc closes",
	.count = columns_count,
	.item = columns_item,
	.marked = columns_marked,
	.choose = columns_choose,
	.stays = true,
};

/* --- columns to sort by */

static size_t sort_count(const struct view *view, const struct shown *shown)
{
	(void)shown;
	return view->now.list.count;
}

static void sort_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	(void)shown;
	text_add_string(name, view->now.list.items[item]->name);
	text_add_string(help, view->now.list.items[item]->help);
}

static bool sort_marked(const struct view *view, const struct shown *shown, size_t item)
{
	(void)shown;
	return view->now.sort == view->now.list.items[item];
}

static void sort_choose(struct view *view, const struct shown *shown, size_t item)
{
	(void)shown;
	question_sort_by(view, view->now.list.items[item]);
}

const struct list_kind list_sort = {
	.title = "Sort by",
	.hint = "Enter sorts, the sorted one again: in reverse; Esc closes",
	.count = sort_count,
	.item = sort_item,
	.marked = sort_marked,
	.choose = sort_choose,
};

/* --- commands, as a palette and as help */

static size_t palette_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	(void)shown;
	return command_count;
}

static void palette_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
	(void)shown;
	text_add_string(name, commands[item].name);
	text_add_format(help, "%s (", commands[item].help);
	bindings_add_keys(help, &view->bindings, item);
	text_add_char(help, ')');
}

static void palette_choose(struct view *view, const struct shown *shown, size_t item)
{
	commands[item].run(view, shown);
}

const struct list_kind list_palette = {
	.title = "Commands",
	.hint = "Enter runs, letters search, Esc closes",
	.count = palette_count,
	.item = palette_item,
	.choose = palette_choose,
};

/* Notes that follow the commands. */
static const char *const notes[][2] = {
	{"not there", "kill, renice, strace: tsnap looks"},
	{"the band", "above the table: threads by state over the last minutes: #: ON, on a CPU;"},
	{"", "r: RQ, waits for a CPU; D: uninterruptible sleep; s: asleep, but working"},
	{"", "(part of a request); -: as many as there are CPUs; ^: the window"},
	{"times", "local, as in reports; CSV, JSON and names of recorded files have UTC"},
	{"history", "the last ten minutes, then one scan a second for two hours; at most 64 MB"},
	{"files", "~/.config/tsnap and /etc/tsnap: views, and keys (COMMAND = KEY ...)"},
};
#define NOTE_COUNT (sizeof(notes) / sizeof(notes[0]))

static size_t help_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	(void)shown;
	return command_count + NOTE_COUNT;
}

static void help_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	(void)shown;
	if (item < command_count) {
		bindings_add_keys(name, &view->bindings, item);
		text_add_format(help, "%s (:%s)", commands[item].help, commands[item].name);
		return;
	}
	text_add_string(name, notes[item - command_count][0]);
	text_add_string(help, notes[item - command_count][1]);
}

const struct list_kind list_help = {
	.title = "Help",
	.hint = "letters search, Esc or Enter closes",
	.count = help_count,
	.item = help_item,
};

/* --- ready-made views */

static size_t views_count(const struct view *view, const struct shown *shown)
{
	(void)shown;
	return view->views ? view->views->count : 0;
}

static void views_item(const struct view *view, const struct shown *shown, size_t item,
		       struct text *name, struct text *help)
{
	const struct saved_view *saved = &view->views->items[item];

	(void)shown;
	text_add_format(name, "%zu ", item + 1);
	text_add_printable(name, saved->name);
	text_add_printable(help, saved->help);
	text_add_format(help, "%s%s", *saved->help ? ": " : "", saved->columns);
	text_add_string(help, *saved->filter ? ", where " : "");
	text_add_printable(help, saved->filter);
}

bool view_choose(struct view *view, const struct shown *shown, size_t number)
{
	const struct saved_view *saved;
	struct column_list list = {0};
	struct error e = {0};
	struct question *question;
	uint64_t needs = 0;
	const char *why;

	if (number >= views_count(view, shown))
		return false;
	saved = &view->views->items[number];
	if (strlen(saved->filter) >= sizeof(view->now.filter))
		return false;
	column_list_add(&list, REPORT_MEASURES_DEFAULT, true, &e);
	column_list_add(&list, saved->columns, true, &e);
	error_done(&e);
	question = view_step(view, "view %s", saved->name);
	question->list = (struct column_list){0};
	for (size_t i = 0; i < list.count; i++)
		if (column_is_there(shown, list.items[i], &why)) {
			question->list.items[question->list.count++] = list.items[i];
		} else if (!*why) {
			question->list.items[question->list.count++] = list.items[i];
			needs |= list.items[i]->needs;
			view_say(view, false, "%s is sampled from now on", list.items[i]->name);
		}
	text_into(question->filter, sizeof(question->filter), saved->filter);
	question->all_states = saved->all_states;
	if (saved->all_states && !shown->source.all_states)
		view_say(view, false,
			 "Idle threads are sampled from now on, at the cost of looking at all");
	if (needs || (saved->all_states && !shown->source.all_states))
		view_load(view, shown, needs, saved->all_states);
	question->sort = NULL;
	question->reversed = false;
	view->row = view->top = view->left = view->column = 0;
	return true;
}

static void views_choose(struct view *view, const struct shown *shown, size_t item)
{
	view_choose(view, shown, item);
}

const struct list_kind list_views = {
	.title = "Views",
	.hint = "Enter chooses, Esc closes",
	.count = views_count,
	.item = views_item,
	.choose = views_choose,
};

/* --- what can be written */

/* Formats to write. path: proposed name of the file; NULL: a view, which has a name. */
static const struct format_row {
	const char *name, *help, *path;
	uint64_t needs; /* needs beside those of the table */
} formats[WRITE_COUNT] = {
	[WRITE_TEXT] = {"text", "this screen as it is", "tsnap-top.txt", 0},
	[WRITE_CSV] = {"csv", "all rows of the table, as CSV", "tsnap-top.csv", 0},
	[WRITE_FOLDED] = {"folded",
			  "stacks of this window and filter, a line each, with their "
			  "time in microseconds",
			  "tsnap-top.folded", NEED_STACK},
	[WRITE_FLAME] = {"flame", "the same as a flame graph, an SVG for a browser",
			 "tsnap-top.svg", NEED_STACK},
	[WRITE_VIEW] = {"view", "columns and filter, under a name, to your own views (Tab)", NULL,
			0},
};

static size_t formats_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	(void)shown;
	return WRITE_COUNT;
}

static void formats_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
	(void)view;
	text_add_string(name, formats[item].name);
	text_add_string(help, formats[item].help);
	if (formats[item].needs & ~shown->source.needs)
		text_add_string(help, "; stacks are not sampled yet: Enter loads them");
}

static void formats_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct format_row *format = &formats[item];

	view->write = (enum write_format)item;
	if (format->needs & ~shown->source.needs) {
		view_load(view, shown, format->needs, false);
		view_say_key(view, false, command_write,
			     "Stacks are sampled from now on: %s again writes them");
	} else if (format->path) {
		prompt_open(view, &prompt_path, format->path);
	} else {
		if (view->views_path)
			prompt_open(view, &prompt_name, "");
		else
			view_say(view, true, "There is no place for it: HOME is not set");
	}
}

const struct list_kind list_formats = {
	.title = "Write",
	.hint = "Enter chooses, Esc closes",
	.count = formats_count,
	.item = formats_item,
	.choose = formats_choose,
};
