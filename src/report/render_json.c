/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON lines: an object per sample, every column in every object, absent as null. */
#include "report/renderer.h"
#include "report/value.h"

#include <string.h>

/* string went through text_add_printable(), so that quotes and backslashes are all there is to
 * escape (RFC 8259, 7). */
static void json_add_text(struct text *out, const char *string)
{
	text_add_char(out, '"');
	for (;;) {
		size_t plain = strcspn(string, "\"\\");

		text_add(out, string, plain);
		string += plain;
		if (!*string)
			break;
		text_add_char(out, '\\');
		text_add_char(out, *string++);
	}
	text_add_char(out, '"');
}

static void json_add(struct text *out, const struct page *page)
{
	const struct column_list *list = page->grid->list;
	struct text room = {0};

	for (size_t row = 0; row < page->grid->row_count; row++) {
		const union value *values = grid_row(page->grid, row);

		for (size_t i = 0; i < list->count; i++) {
			text_add_char(out, i ? ',' : '{');
			json_add_text(out, list->items[i]->name);
			text_add_char(out, ':');
			text_clear(&room);
			value_add(&room, list->items[i], values[i]);
			if (value_is_absent(list->items[i], values[i]))
				text_add_string(out, "null");
			else if (column_is_text(list->items[i]))
				json_add_text(out, text_string(&room));
			else
				text_add(out, text_string(&room), room.length);
		}
		text_add(out, "}\n", 2);
	}
	text_done(&room);
}

const struct renderer renderer_json = {"json", false, NULL, json_add};
