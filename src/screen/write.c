/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/write.h"
#include "base/output.h"
#include "render/renderer.h"
#include "screen/saved.h"
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "base/clock.h"
#include "report/value.h"
#include "render/fold.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the command line that makes the view */

/* Adds the window as a range of the recording: FILE@FROM..TO. */
static void add_recording(struct text *text, const struct shown *shown)
{
	char from[CLOCK_ISO_SIZE], until[CLOCK_ISO_SIZE];
	size_t length = strcspn(shown->source.recording, "@");
	struct text part = {0};

	clock_format_iso(shown->from_us, from);
	clock_format_iso(shown->until_us, until);
	text_add(&part, shown->source.recording, length);
	text_add_format(&part, "@%s..%s", from, until);
	text_add_string(text, " --replay ");
	text_add_word(text, text_string(&part));
	text_done(&part);
}

void command_line_add(struct text *text, const struct view *view, const struct shown *shown)
{
	const struct question *question = &view->now;
	struct column_list before = {0};
	struct error e = {0};
	size_t at = 0;

	text_add_string(text, "tsnap");
	if (shown->source.recording)
		add_recording(text, shown);
	else
		text_add_format(text, " -d %g", (double)question->window_us / US_PER_SECOND);
	if (shown->source.base)
		text_add_string(text, shown->source.base);
	if (question->all_states)
		text_add_string(text, " -a");
	/* a report has these in front anyway */
	column_list_add(&before, REPORT_MEASURES_DEFAULT, true, &e);
	error_done(&e);
	text_add_string(text, " -g ");
	for (size_t i = 0; i < question->list.count; i++) {
		bool given = false;

		for (size_t j = 0; j < before.count; j++)
			given |= before.items[j] == question->list.items[i];
		if (!given)
			text_add_format(text, "%s%s", at++ ? "," : "",
					question->list.items[i]->name);
	}
	if (!at)
		text_add_string(text, "share"); /* -g needs a column, and share is there already */
	if (question->filter[0]) {
		text_add_string(text, " --filter ");
		text_add_word(text, question->filter);
	}
}

void command_line(struct view *view, const struct shown *shown, int64_t by)
{
	struct text line = {0};

	if (view->now.mark_us != ABSENT)
		text_add_string(&line, "(of the later window: one report shows no difference) ");
	command_line_add(&line, view, shown);
	view_say(view, false, "%s", text_string(&line));
	text_done(&line);
}

/* --- files */

/* Adds the rows as CSV, with the columns of the table. */
static void csv_add(struct text *text, const struct shown *shown)
{
	const struct renderer *csv = &renderer_csv;
	struct grid sorted = {0};

	grid_size(&sorted, &shown->list, shown->grid.row_count);
	for (size_t row = 0; row < sorted.row_count; row++)
		memcpy(sorted.values + row * shown->list.count, shown_row(shown, row),
		       shown->list.count * sizeof(union value));
	csv->begin(text, &shown->list);
	csv->add(text, &(struct interval){.grid = &sorted});
	grid_done(&sorted);
}

/* Adds the window's stacks, by the program's name, as --folded and --flame write them. */
static void stacks_add(struct text *text, const struct renderer *renderer, const struct view *view,
		       const struct shown *shown)
{
	struct question question = view->now;
	struct shown stacks = {.history = shown->history, .source = shown->source};
	struct text command = {0};
	struct error e = {0};
	struct interval interval = {
		.grid = &stacks.grid,
		.tally = &stacks.tally,
		.status = &shown->source.status,
		.recording = shown->source.recording,
		.root_count = 1,
	};

	question.list = (struct column_list){0};
	column_list_add(&question.list, FOLD_ROOTS_DEFAULT "," FOLD_COLUMNS, true, &e);
	error_done(&e);
	command_line_add(&command, view, shown);
	interval.command = text_string(&command);
	stacks.list = question.list;
	window_group(&stacks, &question, shown->until_us, &stacks.groups, &stacks.times,
		     &stacks.tally);
	grid_fill_groups(&stacks.grid, &stacks.groups, &stacks.tally);
	renderer->add(text, &interval);
	group_table_done(&stacks.groups);
	exact_times_done(&stacks.times);
	grid_done(&stacks.grid);
	text_done(&command);
}

/* Adds the view to the user's own file, whose directory is made if necessary. */
static void saved_write(struct view *view)
{
	struct text text = {0}, directory = {0};
	const char *slash = strrchr(view->views_path, '/');
	int fd, err;

	saved_view_add(&text, view, view->path);
	/* ~/.config may be missing, too */
	for (const char *at = strchr(view->views_path + 1, '/'); at && at <= slash;
	     at = strchr(at + 1, '/')) {
		text_clear(&directory);
		text_add(&directory, view->views_path, (size_t)(at - view->views_path));
		fd = output_directory(text_string(&directory), 0777);
		if (fd >= 0)
			close(fd);
	}
	err = output_append(view->views_path, text_string(&text), text.length);
	if (err)
		view_say(view, true, "%s: %s", view->views_path, output_error(err));
	else
		view_say(view, false, "Added to %s: the next start has it among the views",
			 view->views_path);
	text_done(&text);
	text_done(&directory);
}

void write_view(struct view *view, const struct shown *shown, const struct cells *cells)
{
	struct text text = {0};
	int err = 0;

	if (view->write == WRITE_VIEW) {
		saved_write(view);
		return;
	}
	if (!access(view->path, F_OK)) {
		view_say(view, true, "%s is there already: another name, please", view->path);
		return;
	}
	if (view->write == WRITE_CSV)
		csv_add(&text, shown);
	else if (view->write == WRITE_FOLDED)
		stacks_add(&text, &renderer_folded, view, shown);
	else if (view->write == WRITE_FLAME)
		stacks_add(&text, &renderer_flame, view, shown);
	else
		cells_text(cells, &text);
	err = output_replace(view->path, text_string(&text), text.length);
	if (err)
		view_say(view, true, "%s: %s", view->path, output_error(err));
	else
		view_say(view, false, "Written: %s", view->path);
	text_done(&text);
}

/* --- what can be written, and where */

static bool path_done(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;

	if (!prompt->text[0] || strlen(prompt->text) >= sizeof(view->path)) {
		prompt_fail(prompt, SIZE_MAX, "The name of a file is needed");
		return false;
	}
	text_into(view->path, sizeof(view->path), prompt->text);
	view->request = REQUEST_WRITE;
	return true;
}

static const struct prompt_kind prompt_path = {"Write to the file: ", path_done, NULL};

static bool name_done(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	size_t length = strlen(prompt->text);

	if (!length || length >= VIEW_LABEL_SIZE ||
	    prompt->text[strspn(
		    prompt->text,
		    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-")]) {
		prompt_fail(prompt, SIZE_MAX, "A name has letters, digits, - and _");
		return false;
	}
	text_into(view->path, sizeof(view->path), prompt->text);
	view->request = REQUEST_WRITE;
	return true;
}

static const struct prompt_kind prompt_name = {"Name of the view: ", name_done, NULL};

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
	return WRITE_COUNT;
}

static void formats_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
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

static const struct list_kind list_formats = {
	.title = "Write",
	.hint = "Enter chooses, Esc closes",
	.count = formats_count,
	.item = formats_item,
	.choose = formats_choose,
};

void command_write(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_formats);
}
