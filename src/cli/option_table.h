/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of options, in the order of --help all, the manual page and completion.
 *
 * option_table.c has the rows, option_parse.c parses by them, option_help.c and src/manual write
 * help, manual page and completion of shells from them.
 */
#ifndef TSNAP_CLI_OPTION_TABLE_H
#define TSNAP_CLI_OPTION_TABLE_H

#include <stddef.h>

#include "config.h"

enum option_kind {
	OPTION_FLAG,	/* bool */
	OPTION_TEXT,	/* const char * */
	OPTION_NUMBER,	/* int64_t */
	OPTION_FEW,	/* int64_t, FEW_DEFAULT if no number is typed */
	OPTION_TIME,	/* int64_t in microseconds, typed in seconds, or with a unit */
	OPTION_MS,	/* int64_t in microseconds, typed in milliseconds, or with a unit */
	OPTION_BYTES,	/* int64_t, typed with a unit */
	OPTION_PERCENT, /* int64_t in tenths of a percent */
	OPTION_MODE,	/* the mode only */
	OPTION_ALL,	/* bool: the word "all" follows, or nothing */
	OPTION_WORD,	/* const char *: a word that is no option follows, or nothing */
	OPTION_CONFIG,	/* const char *, a file whose lines are options */
	OPTION_PROBE,	/* struct own_probes *, which gets one more; may be given again */
	OPTION_COLUMN,	/* none: a variable of programs becomes a column; may be given again */
};

struct option_row {
	int letter;	      /* letter of the option; 0: none */
	const char *name;     /* long name; NULL: none */
	const char *argument; /* name of the argument in --help; NULL: takes none */
	const char *help;     /* see option_help() */
	enum option_kind kind;
	size_t offset;		       /* offset in struct config */
	int64_t least, most;	       /* bounds of a number, or of microseconds */
	enum mode mode;		       /* mode that the option sets, too, unless MODE_REPORT */
	const struct renderer *format; /* of MODE_FORMAT */
	const char *section;	       /* title above this row and those below it; NULL: none */
};

/* The option's help. For an option that takes a word of another table (SOURCE), it has these words,
 * and is valid until the next call. */
const char *option_help(const struct option_row *row);

/* The option that has set the mode, which is not MODE_REPORT, and the format. */
const struct option_row *option_of_mode(const struct config *config);

/* True if the option's argument may be left out. */
static inline bool option_argument_may_miss(const struct option_row *row)
{
	return row->kind == OPTION_FEW || row->kind == OPTION_ALL || row->kind == OPTION_WORD;
}

#define OPTIONS_MAX 128 /* limit of rows */

extern const struct option_row option_table[];
extern const size_t option_count;

#endif
