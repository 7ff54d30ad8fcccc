/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common code of formats with a row per sample: the inner loop of CSV and JSON, so inline. */
#ifndef TSNAP_RENDER_RENDER_CELLS_H
#define TSNAP_RENDER_RENDER_CELLS_H

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "report/grid.h"
#include "report/value.h"

/* Writes a cell and its separator from the one before. scratch: for its use. */
typedef void cell_writer(struct text *out, const struct column *column, union value value,
			 bool first, struct text *scratch);

/* Adds `count` cells of the row above again. starts: offsets of these cells, and the end of the
 * last one; all but that end are replaced by the offsets of the copies. */
static inline void cells_repeat(struct text *out, size_t *starts, size_t count)
{
	size_t length = starts[count] - starts[0], by = out->length - starts[0];
	char *at = text_reserve(out, length);

	memcpy(at, out->bytes + starts[0], length);
	text_end(out, at + length);
	for (size_t i = 0; i < count; i++)
		starts[i] += by;
}

/* Adds each row of the grid, and row_end after it. Many cells, such as the time, have the value of
 * the cell above: the bytes of such neighbours are copied at once, which is cheaper than any
 * formatting.
 */
static inline void cells_add(struct text *out, const struct grid *grid, cell_writer *add,
			     const char *row_end)
{
	size_t count = grid->list->count, starts[COLUMN_LIST_MAX + 1];
	const union value *above = NULL;
	struct text scratch = {0};

	for (size_t row = 0; row < grid->row_count; row++) {
		const union value *values = grid_row(grid, row);

		for (size_t i = 0, from; i < count;) {
			for (from = i; above && i < count && above[i].number == values[i].number;)
				i++;
			if (i > from) {
				cells_repeat(out, &starts[from], i - from);
				continue;
			}
			starts[i] = out->length;
			add(out, grid->list->items[i], values[i], i == 0, &scratch);
			i++;
		}
		starts[count] = out->length;
		text_add_string(out, row_end);
		above = values;
	}
	text_done(&scratch);
}

/* Adds plain text in quotes, which CSV and JSON write alike; most names are plain. False: it is not
 * plain. */
static inline bool cell_add_plain(struct text *out, const struct column *column, union value value)
{
	size_t length;
	char *at;

	if (column->kind != KIND_TEXT)
		return false;
	length = strlen(value.text);
	if (!text_is_plain(value.text, length))
		return false;
	at = text_reserve(out, length + 2);
	*at++ = '"';
	memcpy(at, value.text, length + 1);
	at[length] = '"';
	text_end(out, at + length + 1);
	return true;
}

/* Adds a string in quotes, with the sign `escape` before each of those in `escaped`. */
static inline void cell_add_escaped(struct text *out, const char *string, const char *escaped,
				    char escape)
{
	text_add_char(out, '"');
	for (;;) {
		size_t plain = strcspn(string, escaped);

		text_add(out, string, plain);
		string += plain;
		if (!*string)
			break;
		text_add_char(out, escape);
		text_add_char(out, *string++);
	}
	text_add_char(out, '"');
}

/* Adds a value that is not absent; escaped, escape: as for cell_add_escaped(). */
static inline void cell_add_value(struct text *out, const struct column *column, union value value,
				  struct text *scratch, const char *escaped, char escape)
{
	if (!column_is_text(column)) {
		value_add(out, column, value);
	} else if (!cell_add_plain(out, column, value)) {
		text_clear(scratch);
		value_add(scratch, column, value);
		cell_add_escaped(out, text_string(scratch), escaped, escape);
	}
}

#endif
