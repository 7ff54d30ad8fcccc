/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CSV as RFC 4180 has it, but with bare line feeds: a heading, then a row per sample. Text is
 * always in quotes, so that "" and absent are told apart; numbers never are. */
#include "report/renderer.h"
#include "report/value.h"

#include <string.h>

static void csv_begin(struct text *out, const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			text_add_char(out, ',');
		text_add_string(out, list->items[i]->name);
	}
	text_add_char(out, '\n');
}

static void csv_add_text(struct text *out, const char *string)
{
	text_add_char(out, '"');
	for (;;) {
		size_t plain = strcspn(string, "\"");

		text_add(out, string, plain);
		string += plain;
		if (!*string)
			break;
		text_add(out, "\"\"", 2);
		string++;
	}
	text_add_char(out, '"');
}

/* As csv_add_text() of what value_add() writes, for most names at once. False: not one of them. */
static bool csv_add_name(struct text *out, const char *name)
{
	size_t length = strlen(name);
	char *at;

	if (!text_is_plain(name, length))
		return false;
	at = text_room(out, length + 2);
	*at++ = '"';
	memcpy(at, name, length + 1);
	at[length] = '"';
	text_end(out, at + length + 1);
	return true;
}

static void csv_add_value(struct text *out, const struct column *column, union value value,
			  struct text *room)
{
	if (value_is_absent(column, value) ||
	    (column->kind == KIND_TEXT && csv_add_name(out, value.text)))
		return;
	if (!column_is_text(column)) {
		value_add(out, column, value);
		return;
	}
	text_clear(room);
	value_add(room, column, value);
	csv_add_text(out, text_string(room));
}

/* Many values are those of the row above, as the time always is: their bytes are copied from where
 * they were written, which no formatting beats. */
static void csv_add(struct text *out, const struct page *page)
{
	const struct column_list *list = page->grid->list;
	size_t starts[COLUMN_LIST_MAX], lengths[COLUMN_LIST_MAX];
	const union value *above = NULL;
	struct text room = {0};

	for (size_t row = 0; row < page->grid->row_count; row++) {
		const union value *values = grid_row(page->grid, row);

		for (size_t i = 0; i < list->count; i++) {
			char *at;

			if (above && above[i].number == values[i].number) {
				at = text_room(out, lengths[i]);
				memcpy(at, out->bytes + starts[i], lengths[i]);
				text_end(out, at + lengths[i]);
				continue;
			}
			starts[i] = out->length;
			if (i)
				text_add_char(out, ',');
			csv_add_value(out, list->items[i], values[i], &room);
			lengths[i] = out->length - starts[i];
		}
		text_add_char(out, '\n');
		above = values;
	}
	text_done(&room);
}

const struct renderer renderer_csv = {"csv", false, csv_begin, csv_add};
