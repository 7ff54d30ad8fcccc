/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that run commands, by command; key_file.h has what initializes and reads them. */
#ifndef TSNAP_SCREEN_BINDINGS_H
#define TSNAP_SCREEN_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define BINDINGS_MAX 64	   /* commands */
#define BINDING_KEYS_MAX 6 /* keys of one command */

struct bindings {
	int32_t keys[BINDINGS_MAX][BINDING_KEYS_MAX]; /* by command; 0 ends its keys */
};

/* The number of the command that the key runs; SIZE_MAX: none. */
size_t bindings_command(const struct bindings *bindings, int32_t key);
/* Adds the names of the command's keys, with blanks between; "-" if it has none. */
void bindings_add_keys(struct text *text, const struct bindings *bindings, size_t command);

#endif
