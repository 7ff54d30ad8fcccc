/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kinds of prompts: a filter, words, times, file names, names of views. */
#include "screen/command.h"
#include "screen/prompt.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "report/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- the filter */

/* Shows the parser's error at the character that its message names. */
static void filter_error(struct prompt *prompt, const char *line)
{
	const char *number = strstr(line, "at character "), *what;
	size_t at = SIZE_MAX, left = number ? strtoul(number + 13, NULL, 10) : 0;

	if (left) {
		for (at = 0; prompt->text[at] && --left;)
			do
				at++;
			while (((unsigned char)prompt->text[at] & 0xc0) == 0x80);
	}
	/* message after the quoted line */
	what = number ? strstr(number, "': ") : NULL;
	prompt_fail(prompt, at, what ? what + 3 : line);
}

static bool filter_done_typing(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	struct question question = view->now;
	struct filter filter = {0};
	struct error e = {0};
	int err;

	(void)shown;
	if (!strcmp(prompt->text, view->now.filter))
		return true;
	text_into(question.filter, sizeof(question.filter), prompt->text);
	err = question_filter(&question, &filter, &e);
	if (err)
		filter_error(prompt, e.line);
	else
		text_into(
			view_step(view, "%s", prompt->text[0] ? prompt->text : "no filter")->filter,
			VIEW_INPUT_SIZE, prompt->text);
	filter_done(&filter);
	error_done(&e);
	return !err;
}

/* Completions of a word: names of columns, or values of a column of the table. */
struct completing {
	const char *word;
	size_t length;
	struct text common; /* longest common prefix of all matches */
	size_t count;
};

static void completion_offer(struct completing *completing, const char *whole)
{
	size_t same = 0;

	if (strncmp(whole, completing->word, completing->length) != 0)
		return;
	if (!completing->count++) {
		text_add_string(&completing->common, whole);
		return;
	}
	while (whole[same] && whole[same] == completing->common.bytes[same])
		same++;
	text_end(&completing->common, completing->common.bytes + same);
}

static void values_offer(struct completing *completing, const struct shown *shown, const char *name,
			 size_t length)
{
	struct text value = {0};

	for (size_t i = 0; i < shown->list.count; i++) {
		const struct column *column = shown->list.items[i];

		if (strlen(column->name) != length || strncmp(column->name, name, length) != 0)
			continue;
		for (size_t row = 0; row < shown->grid.row_count; row++) {
			text_clear(&value);
			value_add(&value, column, shown_row(shown, row)[i]);
			if (value.length)
				completion_offer(completing, text_string(&value));
		}
	}
	text_done(&value);
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static void filter_complete(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	size_t start = prompt->at, name;
	struct completing completing = {0};

	while (start && !strchr(" ()&|!=<>~\"", prompt->text[start - 1]))
		start--;
	completing.word = prompt->text + start;
	completing.length = prompt->at - start;
	for (name = start; name && strchr("=!~", prompt->text[name - 1]); name--)
		;
	if (name < start && name && strchr(NAME_LETTERS, prompt->text[name - 1])) {
		size_t end = name;

		while (name && strchr(NAME_LETTERS, prompt->text[name - 1]))
			name--;
		values_offer(&completing, shown, prompt->text + name, end - name);
	} else {
		for (size_t i = 0; i < sample_column_count; i++)
			completion_offer(&completing, sample_columns[i].name);
	}
	if (completing.count && completing.common.length > completing.length)
		prompt_insert(prompt, completing.common.bytes + completing.length);
	else
		view_say(view, true, completing.count ? "%zu begin so" : "Nothing begins so",
			 completing.count);
	text_done(&completing.common);
}

const struct prompt_kind prompt_filter = {"Filter: ", filter_done_typing, filter_complete};

/* --- words to find */

static bool find_done(struct view *view, const struct shown *shown)
{
	text_into(view->find, sizeof(view->find), view->prompt.text);
	if (view->find[0])
		command_find_next(view, shown);
	return true;
}

const struct prompt_kind prompt_find = {"Find: ", find_done, NULL};

/* --- times and durations */

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

const struct prompt_kind prompt_time = {"Jump to (14:03, 14:03:20, -5m): ", time_done, NULL};

static bool window_done(struct view *view, const struct shown *shown)
{
	int64_t us;

	(void)shown;
	if (quantity_read(view->prompt.text, QUANTITY_TIME, US_PER_SECOND, &us) || us < 50000) {
		prompt_fail(&view->prompt, SIZE_MAX, "A length is 5, 0.5, 30s, 2m; at least 0.05");
		return false;
	}
	if (us != view->now.window_us)
		view_step(view, "window %s", view->prompt.text)->window_us = us;
	return true;
}

const struct prompt_kind prompt_window = {"Length of the window in seconds: ", window_done, NULL};

static bool refresh_done(struct view *view, const struct shown *shown)
{
	int64_t us;

	(void)shown;
	if (quantity_read(view->prompt.text, QUANTITY_TIME, US_PER_SECOND, &us) ||
	    us < VIEW_REFRESH_LEAST_US) {
		prompt_fail(&view->prompt, SIZE_MAX, "A length is 2, 0.5, 10s; at least 0.1");
		return false;
	}
	view->refresh_us = us;
	return true;
}

const struct prompt_kind prompt_refresh = {"Seconds between refreshes: ", refresh_done, NULL};

/* --- a file to write to */

static bool path_done(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;

	(void)shown;
	if (!prompt->text[0] || strlen(prompt->text) >= sizeof(view->path)) {
		prompt_fail(prompt, SIZE_MAX, "The name of a file is needed");
		return false;
	}
	text_into(view->path, sizeof(view->path), prompt->text);
	view->request = REQUEST_WRITE;
	return true;
}

const struct prompt_kind prompt_path = {"Write to the file: ", path_done, NULL};

/* --- a name for a view */

static bool name_done(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	size_t length = strlen(prompt->text);

	(void)shown;
	if (!length || length >= VIEW_LABEL_SIZE ||
	    prompt->text[strspn(prompt->text, NAME_LETTERS "-")]) {
		prompt_fail(prompt, SIZE_MAX, "A name has letters, digits, - and _");
		return false;
	}
	text_into(view->path, sizeof(view->path), prompt->text);
	view->request = REQUEST_WRITE;
	return true;
}

const struct prompt_kind prompt_name = {"Name of the view: ", name_done, NULL};
