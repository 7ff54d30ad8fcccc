/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line that is typed: a kind of prompt defines its purpose and what Enter does with it. */
#ifndef TSNAP_SCREEN_PROMPT_H
#define TSNAP_SCREEN_PROMPT_H

#include "screen/shown.h"
#include "screen/view.h"

struct prompt_kind {
	const char *title; /* text before the line */
	/* Handles Enter. False: the line is wrong, prompt.why says why; the prompt stays open. */
	bool (*done)(struct view *view, const struct shown *shown);
	/* Handles Tab: completes the word before the cursor; NULL: there is nothing to complete. */
	void (*complete)(struct view *view, const struct shown *shown);
};

/* Opens a prompt. text: initial contents of the line. */
void prompt_open(struct view *view, const struct prompt_kind *kind, const char *text);
/* Handles a key while the prompt is open. */
void prompt_key(struct view *view, const struct shown *shown, int32_t key);
/* Inserts words into the line at the cursor. */
void prompt_insert(struct prompt *prompt, const char *words);
/* Shows an error in the line at a position. */
void prompt_fail(struct prompt *prompt, size_t at, const char *why);

#endif
