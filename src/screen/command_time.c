/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands about the window: its position and its length. */
#include "screen/command.h"
#include "screen/prompt.h"
#include "base/clock.h"

#include <stdio.h>

/* Moves the window within the history; at the history's end it moves with time again. */
static void window_move(struct view *view, const struct shown *shown, int64_t windows)
{
	int64_t until_us = shown->until_us + windows * view->now.window_us;
	int64_t first_us = shown->history.first_us, last_us = shown->history.last_us;
	struct question *question;

	if (first_us == ABSENT) {
		view_say(view, true, "There is no scan yet");
		return;
	}
	if (windows < 0 && shown->from_us <= first_us) {
		view_say(view, true, "The history begins here");
		return;
	}
	question = view_step(view, windows < 0 ? "back" : "forth");
	if (until_us > last_us) {
		question->until_us = ABSENT;
		return;
	}
	question->until_us = until_us - view->now.window_us < first_us
				     ? first_us + view->now.window_us
				     : until_us;
}

void command_back(struct view *view, const struct shown *shown)
{
	window_move(view, shown, -1);
}

void command_forth(struct view *view, const struct shown *shown)
{
	if (view->now.until_us == ABSENT)
		view_say(view, true, "This is the newest window");
	else
		window_move(view, shown, 1);
}

void command_back_far(struct view *view, const struct shown *shown)
{
	window_move(view, shown, -10);
}

void command_forth_far(struct view *view, const struct shown *shown)
{
	if (view->now.until_us == ABSENT)
		view_say(view, true, "This is the newest window");
	else
		window_move(view, shown, 10);
}

void command_now(struct view *view, const struct shown *shown)
{
	(void)shown;
	if (view->now.until_us != ABSENT)
		view_step(view, "now")->until_us = ABSENT;
}

void command_freeze(struct view *view, const struct shown *shown)
{
	if (view->now.until_us != ABSENT)
		command_now(view, shown);
	else
		view_step(view, "freeze")->until_us = shown->until_us;
}

void command_mark(struct view *view, const struct shown *shown)
{
	bool marked = view->now.mark_us != ABSENT;

	if (!marked && !shown->tally.scans) {
		view_say(view, true, "There is no scan in this window");
		return;
	}
	view_step(view, marked ? "no mark" : "mark")->mark_us = marked ? ABSENT : shown->until_us;
	view->row = view->top = 0;
}

void command_jump(struct view *view, const struct shown *shown)
{
	(void)shown;
	prompt_open(view, &prompt_time, "");
}

void command_window(struct view *view, const struct shown *shown)
{
	char seconds[32];

	(void)shown;
	snprintf(seconds, sizeof(seconds), "%g", (double)view->now.window_us / US_PER_SECOND);
	prompt_open(view, &prompt_window, seconds);
}

void command_refresh(struct view *view, const struct shown *shown)
{
	char seconds[32];

	(void)shown;
	snprintf(seconds, sizeof(seconds), "%g", (double)view->refresh_us / US_PER_SECOND);
	prompt_open(view, &prompt_refresh, seconds);
}
