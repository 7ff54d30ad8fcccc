/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON lines: an object per sample; every object has every column, absent ones as null. */
#include "render/render_cells.h"
#include "render/render_grouped.h"
#include "render/renderer.h"
#include "report/value.h"

/* Adds a cell. Text went through text_add_printable(), so only quotes and backslashes are to be
 * escaped (RFC 8259, 7). */
static inline void json_add_cell(struct text *out, const struct column *column, union value value,
				 bool first, struct text *scratch)
{
	text_add(out, first ? "{\"" : ",\"", 2);
	text_add_string(out, column->name);
	text_add(out, "\":", 2);
	if (value_is_absent(column, value)) {
		text_add_string(out, "null");
		return;
	}
	cell_add_value(out, column, value, scratch, "\"\\", '\\');
}

static void json_add(struct text *out, const struct interval *interval)
{
	cells_add(out, interval->grid, json_add_cell, "}\n");
}

const struct renderer renderer_json = {
	.name = "json",
	.kind = RENDERER_ROWS,
	.of_groups = &renderer_json_grouped,
	.columns = ROW_COLUMNS_DEFAULT,
	.add = json_add,
};

static void json_add_grouped(struct text *out, const struct interval *interval)
{
	struct text row_end = {0};

	grouped_json_head(out, interval);
	grouped_json_end(&row_end, interval);
	cells_add(out, interval->grid, json_add_cell, text_string(&row_end));
	text_done(&row_end);
}

const struct renderer renderer_json_grouped = {
	.name = "json report",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.accounts = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = json_add_grouped,
};
