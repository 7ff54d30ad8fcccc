/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CSV as RFC 4180 has it, but with bare line feeds: a header line, then a row per sample. Text is
 * always in quotes, so that "" and absent differ; numbers never are. */
#include "render/render_cells.h"
#include "render/render_grouped.h"
#include "render/renderer.h"
#include "report/value.h"

static void csv_begin(struct text *out, const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			text_add_char(out, ',');
		text_add_string(out, list->items[i]->name);
	}
	text_add_char(out, '\n');
}

static inline void csv_add_cell(struct text *out, const struct column *column, union value value,
				bool first, struct text *scratch)
{
	if (!first)
		text_add_char(out, ',');
	if (value_is_absent(column, value))
		return;
	cell_add_value(out, column, value, scratch, "\"", '"');
}

/* Adds a cell that no spreadsheet runs as a formula: a thread may be called "=cmd|..." (OWASP, CSV
 * injection).
 */
static inline void csv_add_safe_cell(struct text *out, const struct column *column,
				     union value value, bool first, struct text *scratch)
{
	const char *string;

	if (value_is_absent(column, value) || !column_is_text(column)) {
		csv_add_cell(out, column, value, first, scratch);
		return;
	}
	if (!first)
		text_add_char(out, ',');
	text_clear(scratch);
	text_add_char(scratch, '\'');
	value_add(scratch, column, value);
	string = text_string(scratch);
	cell_add_escaped(out, string[1] && strchr("=+-@\t\r", string[1]) ? string : string + 1,
			 "\"", '"');
}

static void csv_add_rows(struct text *out, const struct interval *interval, const char *row_end)
{
	if (interval->formulas_kept_out)
		cells_add(out, interval->grid, csv_add_safe_cell, row_end);
	else
		cells_add(out, interval->grid, csv_add_cell, row_end);
}

static void csv_add(struct text *out, const struct interval *interval)
{
	csv_add_rows(out, interval, "\n");
}

static void csv_add_grouped(struct text *out, const struct interval *interval)
{
	struct text row_end = {0};

	grouped_csv_end(&row_end, interval);
	csv_add_rows(out, interval, text_string(&row_end));
	text_done(&row_end);
}

const struct renderer renderer_csv = {
	.name = "csv",
	.kind = RENDERER_ROWS,
	.of_groups = &renderer_csv_grouped,
	.columns = ROW_COLUMNS_DEFAULT,
	.begin = csv_begin,
	.add = csv_add,
};

const struct renderer renderer_csv_grouped = {
	.name = "csv report",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.accounts = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.begin = grouped_csv_begin,
	.add = csv_add_grouped,
};
