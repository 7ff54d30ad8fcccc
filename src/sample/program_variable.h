/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns that the user names (--context). Those of variables of programs:
 *
 *     NAME = var FILE:SYMBOL[->OFFSET...][:TYPE]
 *
 * FILE is a file that a process has mapped, by its path or the last part of that. The value is
 * read at the symbol, or from there on through pointers: each ->OFFSET takes the pointer that is
 * there, and adds OFFSET bytes. There is one list of them, made with the options, before any sample
 * or thread: like the table of columns, whose last rows they are.
 */
#ifndef TSNAP_SAMPLE_PROGRAM_VARIABLE_H
#define TSNAP_SAMPLE_PROGRAM_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sample/column.h"

#define VARIABLE_OFFSETS_MAX 8

struct variable_type {
	const char *name;
	unsigned char bytes; /* 0: a text; or, of the type without a name, the symbol's own size */
	bool has_sign;
	enum column_kind kind;
};

struct program_variable {
	const char *name, *module, *symbol;
	int64_t offsets[VARIABLE_OFFSETS_MAX];
	unsigned int offset_count;
	const struct variable_type *type;
};

extern struct program_variable program_variables[PROGRAM_VARIABLES_MAX];
extern size_t program_variable_count;

/* Adds one, and its column. 0, or -EINVAL with a line that says what is wrong. */
int program_variable_add(const char *spec, struct error *e);

/* Adds the column of a context between two probes, kernel/own_probe.h: of held.values[slot] of
 * samples. As program_variable_add(). */
int held_column_add(const char *spec, const char *name, enum column_kind kind, size_t slot,
		    struct error *e);

#endif
