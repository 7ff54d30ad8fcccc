/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands whose effect is not on the screen alone. */
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "base/clock.h"
#include "report/value.h"

#include <stdio.h>
#include <string.h>

void command_write(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_formats);
}

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

void command_line(struct view *view, const struct shown *shown)
{
	struct text line = {0};

	if (view->now.mark_us != ABSENT)
		text_add_string(&line, "(of the later window: one report shows no difference) ");
	command_line_add(&line, view, shown);
	view_say(view, false, "%s", text_string(&line));
	text_done(&line);
}

void command_help(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_help);
}

void command_palette(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_palette);
}

void command_redraw(struct view *view, const struct shown *shown)
{
	(void)shown;
	view->request = REQUEST_REDRAW;
}

void command_stop(struct view *view, const struct shown *shown)
{
	(void)shown;
	view->request = REQUEST_STOP;
}

void command_quit(struct view *view, const struct shown *shown)
{
	(void)shown;
	view->request = REQUEST_QUIT;
}
