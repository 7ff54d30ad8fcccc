/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/write.h"
#include "base/output.h"
#include "render/renderer.h"
#include "screen/saved.h"
#include "screen/command.h"
#include "render/fold.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
