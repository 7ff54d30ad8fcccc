/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table. */
#include "screen/draw.h"
#include "screen/command.h"
#include "report/value.h"

#include <string.h>

#define GAP 2	      /* columns of the screen between two columns */
#define WIDTH_MOST 44 /* greatest width of a text column, unless the screen has columns left */
#define BAR_WIDTH 10

/* Width of the column in screen columns, for the rows that are drawn. */
static size_t width_of(const struct view *view, const struct shown *shown, size_t at, size_t rows)
{
	const struct column *column = shown->list.items[at];
	size_t width = text_width(column->title) + (view->now.sort == column);
	struct text cell = {0};

	if (width < (size_t)column->width)
		width = (size_t)column->width;
	for (size_t row = view->top; row < shown->grid.row_count && row < view->top + rows; row++) {
		size_t wide;

		text_clear(&cell);
		shown_add_value(&cell, column, shown_row(shown, row)[at]);
		wide = text_width(text_string(&cell));
		if (wide > width)
			width = wide;
	}
	text_done(&cell);
	if (column->kind == KIND_TEXT && width > WIDTH_MOST)
		width = WIDTH_MOST;
	if (column->kind == KIND_PERMILLE)
		width += 1 + BAR_WIDTH;
	return width;
}

static void draw_share(struct cells *cells, size_t row, size_t left, size_t width,
		       const char *words, int64_t permille, enum style style)
{
	size_t number = width > BAR_WIDTH + 1 ? width - BAR_WIDTH - 1 : width;
	int64_t marks = permille == ABSENT ? 0 : (permille * BAR_WIDTH + 999) / 1000;

	cells_put_right(cells, row, left, number, words, style);
	for (int64_t i = 0; i < marks && number + 1 + (size_t)i < width; i++)
		cells_put(cells, row, left + number + 1 + (size_t)i, 1, "#", style);
}

static void draw_cell(struct cells *cells, size_t row, size_t left, size_t width,
		      const struct column *column, union value value, enum style style)
{
	struct text words = {0};

	shown_add_value(&words, column, value);
	if (column->kind == KIND_PERMILLE)
		draw_share(cells, row, left, width, text_string(&words), value.number, style);
	else if (column_is_text(column))
		cells_put_cut(cells, row, left, width, text_string(&words), style);
	else
		cells_put_right(cells, row, left, width, text_string(&words), style);
	text_done(&words);
}

static void draw_title(struct cells *cells, const struct layout *layout, const struct view *view,
		       const struct column *column, size_t left, size_t width)
{
	struct text title = {0};

	text_add_string(&title, column->title);
	if (view->now.sort == column)
		text_add_string(&title, view->now.reversed ? "▲" : "▼");
	if (column_is_text(column) || column->kind == KIND_PERMILLE)
		cells_put_cut(cells, layout->title_row, left, width, text_string(&title),
			      STYLE_TITLE);
	else
		cells_put_right(cells, layout->title_row, left, width, text_string(&title),
				STYLE_TITLE);
	text_done(&title);
}

/* Sum of the screen columns that a range of the table's columns takes. */
static size_t widths_sum(const size_t *widths, size_t from, size_t to)
{
	size_t taken = 0;

	for (size_t i = from; i <= to; i++)
		taken += widths[i] + (i > from ? GAP : 0);
	return taken;
}

/* Brings the cursor into sight, and leaves no columns unused at the right. */
static void scroll(struct view *view, const struct layout *layout, const size_t *widths,
		   size_t count)
{
	if (view->left > view->column)
		view->left = view->column;
	while (view->left < view->column &&
	       widths_sum(widths, view->left, view->column) > layout->columns)
		view->left++;
	while (view->left && widths_sum(widths, view->left - 1, count - 1) <= layout->columns)
		view->left--;
}

/* Explains why there are no rows. */
static void draw_nothing(struct cells *cells, const struct layout *layout, const struct view *view,
			 const struct shown *shown)
{
	struct text words = {0};

	if (!shown->tally.scans) {
		text_add_string(&words, "No scan is in this window: ");
		add_key_of(&words, view, command_now);
		text_add_string(&words, " goes to the newest one");
	} else if (view->now.filter[0]) {
		text_add_string(&words, "No sample fits the filter: ");
		add_key_of(&words, view, command_undo);
		text_add_string(&words, " undoes the last step, ");
		add_key_of(&words, view, command_filter);
		text_add_string(&words, " edits it");
	} else if (!view->now.all_states) {
		text_add_string(&words, "No thread is active in this window: ");
		add_key_of(&words, view, command_all_states);
		text_add_string(&words, " shows all states");
	} else {
		text_add_string(&words, "No thread is in this window");
	}
	cells_put_cut(cells, layout->table_top + 1, 2, layout->columns - 2, text_string(&words),
		      STYLE_PLAIN);
	text_done(&words);
}

/* Style of a cell: in a difference, numbers that grew and numbers that shrank have their own. */
static enum style style_of(const struct shown *shown, size_t at, size_t row)
{
	const struct column *column = shown->list.items[at];
	int64_t number = shown_row(shown, row)[at].number;

	if (!shown->marked.scans || column->role != ROLE_MEASURE || number == ABSENT || !number)
		return STYLE_PLAIN;
	return number > 0 ? STYLE_MORE : STYLE_LESS;
}

void draw_table(struct cells *cells, const struct layout *layout, struct view *view,
		const struct shown *shown)
{
	size_t widths[COLUMN_LIST_MAX], rows = layout->table_rows, left = 0;

	view->page_rows = rows;
	/* leaves no blank rows below the last row of a larger screen while others are above */
	if (view->top + rows > shown->grid.row_count)
		view->top = shown->grid.row_count > rows ? shown->grid.row_count - rows : 0;
	if (view->top > view->row)
		view->top = view->row;
	if (rows && view->row >= view->top + rows)
		view->top = view->row - rows + 1;
	for (size_t i = 0; i < shown->list.count; i++)
		widths[i] = width_of(view, shown, i, rows);
	scroll(view, layout, widths, shown->list.count);
	view->positions.title_row = layout->title_row;
	view->positions.table_top = layout->table_top;
	view->positions.table_rows = rows;
	view->positions.first = view->left;
	for (size_t i = view->left; i < shown->list.count && left < layout->columns; i++) {
		size_t width = widths[i], free_width = layout->columns - left;

		if (width > free_width)
			width = free_width;
		draw_title(cells, layout, view, shown->list.items[i], left, width);
		for (size_t row = 0; row < rows && view->top + row < shown->grid.row_count; row++)
			draw_cell(cells, layout->table_top + row, left, width, shown->list.items[i],
				  shown_row(shown, view->top + row)[i],
				  style_of(shown, i, view->top + row));
		if (shown->grid.row_count && rows) {
			size_t at = layout->table_top + view->row - view->top;

			cells_style(cells, at, left, width + GAP, STYLE_CURSOR);
			if (i == view->column)
				cells_style(cells, at, left, width, STYLE_CELL);
		}
		view->positions.lefts[view->positions.count++] = left;
		left += width + GAP;
	}
	if (!shown->grid.row_count)
		draw_nothing(cells, layout, view, shown);
}
