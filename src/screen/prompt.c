/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/prompt.h"
#include "screen/key.h"

#include <stdio.h>
#include <string.h>

void prompt_open(struct view *view, const struct prompt_kind *kind, const char *text)
{
	struct prompt *prompt = &view->prompt;

	*prompt = (struct prompt){.kind = kind, .wrong = SIZE_MAX};
	prompt_insert(prompt, text);
}

void prompt_fail(struct prompt *prompt, size_t at, const char *why)
{
	snprintf(prompt->why, sizeof(prompt->why), "%s", why);
	prompt->wrong = at;
}

void prompt_insert(struct prompt *prompt, const char *words)
{
	size_t length = strlen(prompt->text), more = strlen(words);

	if (length + more >= sizeof(prompt->text))
		return;
	memmove(prompt->text + prompt->at + more, prompt->text + prompt->at,
		length - prompt->at + 1);
	memcpy(prompt->text + prompt->at, words, more);
	prompt->at += more;
}

static bool is_middle(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static void cursor_left(struct prompt *prompt)
{
	if (prompt->at)
		prompt->at--;
	while (prompt->at && is_middle(prompt->text[prompt->at]))
		prompt->at--;
}

static void cursor_right(struct prompt *prompt)
{
	if (prompt->text[prompt->at])
		prompt->at++;
	while (is_middle(prompt->text[prompt->at]))
		prompt->at++;
}

/* Deletes the text between the cursor and that position. */
static void erase_to(struct prompt *prompt, size_t to)
{
	memmove(prompt->text + prompt->at, prompt->text + to, strlen(prompt->text + to) + 1);
}

static void erase_before(struct prompt *prompt)
{
	size_t end = prompt->at;

	cursor_left(prompt);
	erase_to(prompt, end);
}

static void erase_after(struct prompt *prompt)
{
	size_t start = prompt->at, end;

	cursor_right(prompt);
	end = prompt->at;
	prompt->at = start;
	erase_to(prompt, end);
}

/* Inserts a code point as UTF-8. */
static void character_type(struct prompt *prompt, int32_t key)
{
	char bytes[5] = "";

	if (key < ' ' || key == 127 || key >= KEY_CODE_UP)
		return;
	if (key < 0x80) {
		bytes[0] = (char)key;
	} else if (key < 0x800) {
		bytes[0] = (char)(0xc0 | key >> 6);
		bytes[1] = (char)(0x80 | (key & 63));
	} else if (key < 0x10000) {
		bytes[0] = (char)(0xe0 | key >> 12);
		bytes[1] = (char)(0x80 | (key >> 6 & 63));
		bytes[2] = (char)(0x80 | (key & 63));
	} else {
		bytes[0] = (char)(0xf0 | key >> 18);
		bytes[1] = (char)(0x80 | (key >> 12 & 63));
		bytes[2] = (char)(0x80 | (key >> 6 & 63));
		bytes[3] = (char)(0x80 | (key & 63));
	}
	prompt_insert(prompt, bytes);
}

static void line_edit(struct prompt *prompt, int32_t key)
{
	switch (key) {
	case KEY_CODE_LEFT:
		cursor_left(prompt);
		return;
	case KEY_CODE_RIGHT:
		cursor_right(prompt);
		return;
	case KEY_CODE_HOME:
	case 1: /* Ctrl-A */
		prompt->at = 0;
		return;
	case KEY_CODE_END:
	case 5: /* Ctrl-E */
		prompt->at = strlen(prompt->text);
		return;
	case KEY_CODE_BACKSPACE:
		erase_before(prompt);
		return;
	case KEY_CODE_DELETE:
		erase_after(prompt);
		return;
	case 21: /* Ctrl-U */
		prompt->at = 0;
		prompt->text[0] = '\0';
		return;
	default:
		character_type(prompt, key);
	}
}

void prompt_key(struct view *view, const struct shown *shown, int32_t key)
{
	struct prompt *prompt = &view->prompt;
	const struct prompt_kind *kind = prompt->kind;

	if (key == KEY_CODE_ESCAPE || key == 3) {
		prompt->kind = NULL;
	} else if (key == KEY_CODE_ENTER) {
		if (kind->done(view, shown))
			prompt->kind = NULL;
	} else if (key == KEY_CODE_TAB) {
		if (kind->complete)
			kind->complete(view, shown);
	} else {
		prompt->why[0] = '\0';
		prompt->wrong = SIZE_MAX;
		line_edit(prompt, key);
	}
}
