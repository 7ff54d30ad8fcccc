/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys: a number each, and a name for those that are no characters. */
#ifndef TSNAP_SCREEN_KEY_H
#define TSNAP_SCREEN_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Keys that are characters have their code points; Ctrl with a letter is 1 to 26. */
enum key {
	KEY_CODE_TAB = 9,
	KEY_CODE_ENTER = 13,
	KEY_CODE_ESCAPE = 27,
	KEY_CODE_BACKSPACE = 127,
	KEY_CODE_UP = 0x200000, /* first number above all code points */
	KEY_CODE_DOWN,
	KEY_CODE_LEFT,
	KEY_CODE_RIGHT,
	KEY_CODE_PAGE_UP,
	KEY_CODE_PAGE_DOWN,
	KEY_CODE_HOME,
	KEY_CODE_END,
	KEY_CODE_DELETE,
	KEY_CODE_F1,
	KEY_CODE_F12 = KEY_CODE_F1 + 11,
	KEY_CODE_MOUSE, /* mouse event: see view_mouse() */
};

/* Adds the key's name: Enter, Ctrl-L, a, ... */
void key_add(struct text *text, int32_t key);
/* The key with that name of `length` bytes; -1: none. */
int32_t key_of_name(const char *name, size_t length);

#define BINDINGS_MAX 64	   /* commands */
#define BINDING_KEYS_MAX 6 /* keys of one command */

/* Keys that run commands. */
struct bindings {
	int32_t keys[BINDINGS_MAX][BINDING_KEYS_MAX]; /* by command; 0 ends its keys */
};

/* The number of the command that the key runs; SIZE_MAX: none. */
size_t bindings_command(const struct bindings *bindings, int32_t key);
/* Adds the names of the command's keys, with blanks between; "-" if it has none. */
void bindings_add_keys(struct text *text, const struct bindings *bindings, size_t command);

#endif
