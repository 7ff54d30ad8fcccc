/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line that is typed: a kind of prompt says what it is for and what Enter does with it. */
#ifndef TSNAP_SCREEN_PROMPT_H
#define TSNAP_SCREEN_PROMPT_H

#include "screen/shown.h"
#include "screen/view.h"

struct prompt_kind {
	const char *title; /* before the line */
	/* Enter. False: the line is wrong, and prompt.why tells how; the prompt stays. */
	bool (*done)(struct view *view, const struct shown *shown);
	/* Tab: completes the word before the cursor; NULL: there is nothing to complete. */
	void (*complete)(struct view *view, const struct shown *shown);
};

extern const struct prompt_kind prompt_filter, prompt_find, prompt_time, prompt_window,
	prompt_refresh, prompt_path, prompt_name;

/* text: what the line begins with. */
void prompt_open(struct view *view, const struct prompt_kind *kind, const char *text);
/* A key while the prompt is open. */
void prompt_key(struct view *view, const struct shown *shown, int32_t key);
/* Puts words into the line where the cursor is. */
void prompt_insert(struct prompt *prompt, const char *words);
/* Tells what is wrong with it. */
void prompt_fail(struct prompt *prompt, size_t at, const char *why);

#endif
