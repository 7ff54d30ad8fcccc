/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands about the window: its position and its length. */
#include "screen/command.h"
#include "screen/prompt.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <stdio.h>
#include <strings.h>

/* Moves the window within the history; at the history's end it moves with time again. */
void command_move(struct view *view, const struct shown *shown, int64_t by)
{
	int64_t until_us = shown->until_us + by * view->now.window_us;
	int64_t first_us = shown->history.first_us, last_us = shown->history.last_us;
	struct question *question;

	if (by > 0 && view->now.until_us == ABSENT) {
		view_say(view, true, "This is the newest window");
		return;
	}
	if (first_us == ABSENT) {
		view_say(view, true, "There is no scan yet");
		return;
	}
	if (by < 0 && shown->from_us <= first_us) {
		view_say(view, true, "The history begins here");
		return;
	}
	question = view_step(view, by < 0 ? "back" : "forth");
	if (until_us > last_us) {
		question->until_us = ABSENT;
		return;
	}
	question->until_us = until_us - view->now.window_us < first_us
				     ? first_us + view->now.window_us
				     : until_us;
}

void command_now(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->now.until_us != ABSENT)
		view_step(view, "now")->until_us = ABSENT;
}

void command_freeze(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->now.until_us != ABSENT)
		command_now(view, shown, 0);
	else
		view_step(view, "freeze")->until_us = shown->until_us;
}

void command_mark(struct view *view, const struct shown *shown, int64_t by)
{
	bool marked = view->now.mark_us != ABSENT;

	if (!marked && !shown->tally.scans) {
		view_say(view, true, "There is no scan in this window");
		return;
	}
	view_step(view, marked ? "no mark" : "mark")->mark_us = marked ? ABSENT : shown->until_us;
	view->row = view->top = 0;
}

/* --- times and durations that are typed */

#define HALF_DAY_US (43200 * US_PER_SECOND)

static bool time_done(struct view *view, const struct shown *shown)
{
	const char *typed = view->prompt.text;
	struct time_context context = {.now_us = shown->history.last_us + 1,
				       .after_us = shown->until_us - HALF_DAY_US};
	int64_t until_us;
	int err;

	if (shown->history.first_us == ABSENT) {
		prompt_fail(&view->prompt, SIZE_MAX, "There is no scan yet");
		return false;
	}
	err = time_word_read(typed, &context, &until_us);
	if (err < 0) {
		prompt_fail(&view->prompt, SIZE_MAX, "A time is " TIME_WORD_HELP);
		return false;
	}
	/* a time that was given is the start of the window, -5m its end */
	if (*typed != '-' && strcasecmp(typed, "now") != 0)
		until_us += view->now.window_us;
	if (until_us <= shown->history.first_us ||
	    until_us - view->now.window_us > shown->history.last_us) {
		char first[CLOCK_LOCAL_SIZE], last[CLOCK_LOCAL_SIZE], why[160];

		clock_format_local(shown->history.first_us, first);
		clock_format_local(shown->history.last_us, last);
		snprintf(why, sizeof(why), "The history is from %.10s %.8s to %.8s %s", first,
			 first + CLOCK_LOCAL_TIME, last + CLOCK_LOCAL_TIME,
			 last + CLOCK_LOCAL_ZONE);
		prompt_fail(&view->prompt, SIZE_MAX, why);
		return false;
	}
	view_step(view, "at %s", typed)->until_us = until_us;
	return true;
}

static const struct prompt_kind prompt_time = {"Jump to (14:03, 14:03:20, -5m): ", time_done, NULL};

void command_jump(struct view *view, const struct shown *shown, int64_t by)
{
	prompt_open(view, &prompt_time, "");
}

static bool window_done(struct view *view, const struct shown *shown)
{
	int64_t us;

	if (quantity_read(view->prompt.text, QUANTITY_TIME, US_PER_SECOND, &us) || us < 50000) {
		prompt_fail(&view->prompt, SIZE_MAX, "A length is 5, 0.5, 30s, 2m; at least 0.05");
		return false;
	}
	if (us != view->now.window_us)
		view_step(view, "window %s", view->prompt.text)->window_us = us;
	return true;
}

static const struct prompt_kind prompt_window = {"Length of the window in seconds: ", window_done,
						 NULL};

void command_window(struct view *view, const struct shown *shown, int64_t by)
{
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%g", (double)view->now.window_us / US_PER_SECOND);
	prompt_open(view, &prompt_window, seconds);
}

static bool refresh_done(struct view *view, const struct shown *shown)
{
	int64_t us;

	if (quantity_read(view->prompt.text, QUANTITY_TIME, US_PER_SECOND, &us) ||
	    us < VIEW_REFRESH_LEAST_US) {
		prompt_fail(&view->prompt, SIZE_MAX, "A length is 2, 0.5, 10s; at least 0.1");
		return false;
	}
	view->refresh_us = us;
	return true;
}

static const struct prompt_kind prompt_refresh = {"Seconds between refreshes: ", refresh_done,
						  NULL};

void command_refresh(struct view *view, const struct shown *shown, int64_t by)
{
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%g", (double)view->refresh_us / US_PER_SECOND);
	prompt_open(view, &prompt_refresh, seconds);
}
