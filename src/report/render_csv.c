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

static void csv_add(struct text *out, const struct page *page)
{
	const struct column_list *list = page->grid->list;
	struct text room = {0};

	for (size_t row = 0; row < page->grid->row_count; row++) {
		const union value *values = grid_row(page->grid, row);

		for (size_t i = 0; i < list->count; i++) {
			if (i)
				text_add_char(out, ',');
			if (value_is_absent(list->items[i], values[i]))
				continue;
			if (!column_is_text(list->items[i])) {
				value_add(out, list->items[i], values[i]);
				continue;
			}
			text_clear(&room);
			value_add(&room, list->items[i], values[i]);
			csv_add_text(out, text_string(&room));
		}
		text_add_char(out, '\n');
	}
	text_done(&room);
}

const struct renderer renderer_csv = {"csv", false, csv_begin, csv_add};
