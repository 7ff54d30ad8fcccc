/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/page_rows.h"
#include "report/value.h"

#define SHARE_LEAST 5 /* per mille: rows below are summed up in one */
#define ROWS_LEAST 3  /* in a window of any height */
#define OWN_LINES 2   /* the titles, and the prompt after the report */

/* The column of shares; NULL: no small row is left out, because there is no such column, or because
 * rows have exact times, which may be large where the share of the samples is small. */
static const struct column *const *share_column(const struct column_list *list)
{
	const struct column *const *found = NULL;

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i]->role == ROLE_MEASURE && list->items[i]->needs)
			return NULL;
		if (list->items[i]->kind == KIND_PERMILLE)
			found = &list->items[i];
	}
	return found;
}

static int64_t share_of(const struct page *page, const struct column *const *share, size_t row)
{
	return grid_row(page->grid, row)[share - page->grid->list->items].number;
}

static size_t lines_of_row(const struct page *page, size_t row, struct text *scratch)
{
	size_t lines = 1;

	text_clear(scratch);
	page_add_stacks(scratch, page, row);
	for (size_t i = 0; i < scratch->length; i++)
		lines += scratch->bytes[i] == '\n';
	return lines;
}

/* The first of `rows` rows that so many lines hold. */
static size_t rows_in_lines(const struct page *page, size_t rows, size_t lines)
{
	struct text scratch = {0};
	size_t row = 0, taken = 0;

	while (row < rows && (taken += lines_of_row(page, row, &scratch)) <= lines)
		row++;
	text_done(&scratch);
	return row;
}

size_t page_rows(const struct page *page, size_t other_lines)
{
	size_t rows = page->grid->row_count, all = rows, fit, least;
	const struct column *const *share = share_column(page->grid->list);
	size_t lines =
		page->height > other_lines + OWN_LINES ? page->height - other_lines - OWN_LINES : 0;

	if (!page->height)
		return page->row_limit && rows > page->row_limit ? page->row_limit : rows;
	while (share && rows && share_of(page, share, rows - 1) < SHARE_LEAST)
		rows--;
	/* the line that stands for one row takes as much as the row */
	if (!rows || rows + 1 >= all)
		rows = all;
	fit = rows_in_lines(page, rows, lines);
	if (fit < all)
		fit = rows_in_lines(page, rows, lines ? lines - 1 : 0);
	least = rows < ROWS_LEAST ? rows : ROWS_LEAST;
	return fit < least ? least : fit;
}

void page_add_rest(struct text *out, const struct page *page, size_t rows)
{
	const struct column_list *list = page->grid->list;
	size_t left = page->grid->row_count - rows;
	struct text line = {0};

	text_add_format(&line, "%zu more row%s", left, left == 1 ? "" : "s");
	for (size_t i = 0; i < list->count; i++) {
		int64_t share = 0;

		if (list->items[i]->kind != KIND_PERMILLE)
			continue;
		for (size_t row = 0; row < rows; row++)
			share += grid_row(page->grid, row)[i].number;
		text_add_string(&line, ", ");
		text_add_decimals(&line, share < 1000 ? 1000 - share : 0, 1);
		text_add_string(&line, " %");
	}
	text_add_string(&line, " (--all-rows shows them)");
	page_add_wrapped(out, page, text_string(&line));
	text_done(&line);
}
