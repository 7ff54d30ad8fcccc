/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A column: one row of a table has all that is known of it. The address of the row is its
 * identity.
 *
 * sample_columns[] holds a row per field of a sample that can be shown, read back and grouped by;
 * report/measure.c holds, as rows of the same type, what only a group has. Reader, grouping,
 * renderers and --list use the rows; none of them knows a column by name.
 */
#ifndef TSNAP_SAMPLE_COLUMN_H
#define TSNAP_SAMPLE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sample/sample.h"

/* Kinds of values, by how they are stored and written. All but text are stored as a number; ABSENT
 * and NULL are absent. */
enum column_kind {
	KIND_TEXT,   /* const char * */
	KIND_NUMBER, /* decimal */
	KIND_HEX,   /* 64 bits without a sign, written as 0x text: JSON's numbers can't hold them */
	KIND_TIME,  /* UTC microseconds, written as ISO 8601 */
	KIND_STATE, /* enum thread_state_kind, written as its row's name */
	KIND_HUNDREDTHS,  /* a number with two decimals */
	KIND_THOUSANDTHS, /* a number with three decimals */
	KIND_PERMILLE,	  /* a share, written in percent with one decimal */
	KIND_NS,	  /* ns; in a report with three digits and a unit */
	KIND_THREADS,	  /* hundredths; in a report with one decimal from 10 threads on */
};

/* Use of a column by grouping. */
enum column_role {
	ROLE_KEY,     /* samples with equal values are one group */
	ROLE_SUM,     /* summed over the group's samples */
	ROLE_MAX,     /* the largest of the group's samples */
	ROLE_MEASURE, /* measures the group itself; offset is into struct measures */
};

struct column {
	const char *name;  /* stable name: -g, CSV and JSON */
	const char *title; /* title of the report's column */
	const char *help;
	enum column_kind kind;
	enum column_role role;
	uint64_t needs; /* needs of the column, NEED_* */
	int width;	/* least width in a report */
	size_t offset;	/* offset in struct sample_wide, of an int64_t or a const char * */
};

union value {
	int64_t number;
	const char *text;
};
/* keys are copied, hashed and compared as 64-bit words */
_Static_assert(sizeof(union value) == 8 && sizeof(const char *) == 8, "64-bit hosts only");

/* At the end are the columns that sample_column_add() has added. */
extern const struct column *const sample_columns;
extern size_t sample_column_count;
/* Adds a column of a name that the user has chosen; before there are any samples or threads. There
 * is one for each of struct sample's app.variables and held.values. */
void sample_column_add(const char *name, enum column_kind kind, uint64_t needs, size_t offset);

/* Section of the columns from `first` on, up to the next section. */
struct column_section {
	const char *name, *first;
};

extern const struct column_section column_sections[];
extern const size_t column_section_count;

/* True if users call the column so: by its name, or by its title in reports. */
static inline bool column_is_called(const struct column *column, const char *name)
{
	return !strcmp(column->name, name) || !strcmp(column->title, name);
}

/* The column with that name; NULL if there is none. */
const struct column *sample_column_find(const char *name);
/* The column that is called so; NULL if there is none. */
const struct column *sample_column_called(const char *name);

/* True if the column is about a thread rather than one sample: a thread keeps its value whatever it
 * does. Accounts have these columns, too. */
bool column_is_kept(const struct column *column);

/* Reads a column's value. from: the struct that the column's offset is into; for most columns a
 * struct sample is enough. Inline, as it is in the inner loop of grouping. */
static inline union value column_read(const struct column *column, const void *from)
{
	union value value;

	memcpy(&value, (const char *)from + column->offset, sizeof(value));
	return value;
}

static inline void column_set(const struct column *column, void *to, union value value)
{
	memcpy((char *)to + column->offset, &value, sizeof(value));
}

static inline bool value_is_absent(const struct column *column, union value value)
{
	return column->kind == KIND_TEXT ? !value.text : value.number == ABSENT;
}

#endif
