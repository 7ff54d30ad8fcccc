/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "script.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/proc_values.h"
#include "recording/recording.h"
#include "screen/command.h"
#include "screen/draw.h"
#include "screen/feed.h"
#include "screen/key.h"
#include "screen/list.h"
#include "screen/saved.h"
#include "screen/view.h"
#include "screen/view_event.h"
#include "screen/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const struct error *e)
{
	fprintf(stderr, "%s\n", e->line);
	exit(1);
}

static void fill(struct stage *stage)
{
	stage->answered = stage->view->now;
	shown_fill(&stage->shown, stage->history, &stage->view->now,
		   draw_band_steps(stage->columns));
	finding_lines_fill(&stage->shown, &stage->view->now, stage->columns);
}

void stage_open(struct stage *stage, const char *recording, const struct query *query)
{
	struct filter filter = {.all_states = true};
	const uint64_t needs = ~(uint64_t)NEEDS_PROC_VALUES;
	const struct recording_part whole = {.from_us = ABSENT, .until_us = ABSENT};
	struct source *source;
	struct error e = {0};
	struct feed feed;
	int more;

	*stage = (struct stage){.rows = 24, .columns = 80};
	stage->view = memory_get(sizeof(*stage->view));
	if (view_init(stage->view, query, &e))
		fail(&e);
	bindings_begin(&stage->view->bindings);
	saved_views_begin(&stage->views);
	if (saved_views_read(&stage->views, "views", &e))
		fail(&e);
	stage->view->views = &stage->views;
	stage->view->views_path = "screen-test.d/tsnap/views";
	if (recording_open((const char *[]){recording, NULL}, &whole, &filter, needs, &source, &e))
		fail(&e);
	stage->history = history_new(HISTORY_BYTES_DEFAULT, 0);
	feed_begin(&feed, source, stage->history);
	while ((more = feed_next(&feed, &e)) > 0)
		;
	if (more < 0)
		fail(&e);
	stage->shown.source.recording = recording;
	stage->shown.source.needs = needs;
	stage->shown.source.all_states = true;
	feed_describe(&feed, &stage->shown.source);
	source->close(source);
	filter_done(&filter);
	fill(stage);
}

/* Does what the view requests. False: the end. */
static bool settle(struct stage *stage)
{
	struct view *view = stage->view;
	enum view_request request = view->request;

	view->request = REQUEST_NONE;
	if (request != REQUEST_NONE)
		stage->asked = request;
	if (request == REQUEST_WRITE && !stage->quiet)
		write_view(view, &stage->shown, &stage->cells);
	if (question_differs(&stage->answered, &view->now))
		fill(stage);
	list_fill(&stage->shown, view);
	return request != REQUEST_QUIT;
}

bool stage_key(struct stage *stage, int32_t key)
{
	view_key(stage->view, &stage->shown, key);
	return settle(stage);
}

void stage_mouse(struct stage *stage, const struct mouse *mouse)
{
	view_mouse(stage->view, &stage->shown, mouse);
	settle(stage);
	stage_draw(stage);
}

void stage_draw(struct stage *stage)
{
	if (stage->columns != stage->cells.columns)
		fill(stage);
	list_fill(&stage->shown, stage->view);
	cells_clear(&stage->cells, stage->rows, stage->columns);
	draw(&stage->cells, stage->view, &stage->shown);
}

void stage_close(struct stage *stage)
{
	shown_done(&stage->shown);
	cells_done(&stage->cells);
	history_free(stage->history);
	saved_views_done(&stage->views);
	free(stage->view);
	names_clear();
}

/* Adds the whole contents of the row; returns the columns used. */
static size_t row_add(struct text *text, const struct cells *cells, size_t row)
{
	for (size_t column = 0; column < cells->columns; column++)
		text_add_string(text, cells_at(cells, row, column)->bytes);
	return text_width(text_string(text));
}

bool cells_are_clean(const struct cells *cells)
{
	struct text text = {0}, printable = {0};
	bool clean = true;

	for (size_t row = 0; clean && row < cells->rows; row++) {
		size_t slashes = 0;

		text_clear(&text);
		clean = row_add(&text, cells, row) == cells->columns;
		for (const char *at = text_string(&text); *at; at++)
			slashes += *at == '\\';
		text_clear(&printable);
		text_add_printable(&printable, text_string(&text));
		clean &= printable.length == text.length + slashes;
	}
	text_done(&text);
	text_done(&printable);
	return clean;
}
