/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values as text, the same in every format. */
#ifndef TSNAP_REPORT_VALUE_H
#define TSNAP_REPORT_VALUE_H

#include <stdbool.h>

#include "base/text.h"
#include "sample/column.h"

/* Adds the value, printable and without quotes, whatever the locale; adds nothing if it is
 * ABSENT. */
void value_add(struct text *text, const struct column *column, union value value);

/* True for columns that are text in CSV and JSON, and aligned left; the others are bare numbers. */
static inline bool column_is_text(const struct column *column)
{
	return column->kind == KIND_TEXT || column->kind == KIND_HEX || column->kind == KIND_TIME ||
	       column->kind == KIND_STATE;
}

/* Compares values for the order of equal groups: absent first, then by number or by bytes. Returns
 * as strcmp(3). */
int value_compare(const struct column *column, union value a, union value b);

/* number * times / by, rounded to nearest, clamped to int64_t; 0 if by is 0. */
int64_t ratio(int64_t number, int64_t times, int64_t by);

/* a + b, clamped to int64_t; an ABSENT one counts as 0. */
static inline int64_t sum(int64_t a, int64_t b)
{
	int64_t total;

	if (a == ABSENT)
		return b;
	if (b == ABSENT)
		return a;
	if (__builtin_add_overflow(a, b, &total))
		return a < 0 ? -INT64_MAX : INT64_MAX;
	return total;
}

/* Sign for a number from 0 to `most`: the darker the greater; a number above 0 always has one, and
 * only the greatest has the darkest. */
char shade_of(int64_t number, int64_t most);

/* Adds ns with three digits and a unit: 0 ns, 12.3 us, 4.56 ms, 12345 s. */
void text_add_duration(struct text *text, int64_t ns);

/* Adds number / 10^decimals (decimals: 1 to 3): 123, 2 is 1.23. */
void text_add_decimals(struct text *text, int64_t number, int decimals);

#endif
