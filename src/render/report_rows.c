/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/report_rows.h"
#include "report/value.h"

#define SHARE_LEAST 5 /* per mille: rows with less are summed up in one */
#define ROWS_LEAST 3  /* least number of rows in a window of any height */
#define OWN_LINES 2   /* lines of the titles, and of the prompt after the report */

/* The column of shares; NULL: no small row is left out, either because there is no such column, or
 * because rows have exact times, which may be large where the share of the samples is small. */
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

static int64_t share_of(const struct interval *interval, const struct column *const *share,
			size_t row)
{
	return grid_row(interval->grid, row)[share - interval->grid->list->items].number;
}

static size_t lines_of_row(const struct interval *interval, size_t row, struct text *scratch)
{
	size_t lines = 1;

	text_clear(scratch);
	interval_add_stacks(scratch, interval, row);
	for (size_t i = 0; i < scratch->length; i++)
		lines += scratch->bytes[i] == '\n';
	return lines;
}

/* Number of the first of `rows` rows that fit into that many lines. */
static size_t rows_in_lines(const struct interval *interval, size_t rows, size_t lines)
{
	struct text scratch = {0};
	size_t row = 0, taken = 0;

	while (row < rows && (taken += lines_of_row(interval, row, &scratch)) <= lines)
		row++;
	text_done(&scratch);
	return row;
}

size_t report_rows(const struct interval *interval, size_t other_lines)
{
	size_t rows = interval->grid->row_count, all = rows, fit, least;
	const struct column *const *share = share_column(interval->grid->list);
	size_t lines = interval->height > other_lines + OWN_LINES
			       ? interval->height - other_lines - OWN_LINES
			       : 0;

	if (!interval->height)
		return interval->row_limit && rows > interval->row_limit ? interval->row_limit
									 : rows;
	while (share && rows && share_of(interval, share, rows - 1) < SHARE_LEAST)
		rows--;
	/* a line in place of one row takes as much height as the row */
	if (!rows || rows + 1 >= all)
		rows = all;
	fit = rows_in_lines(interval, rows, lines);
	if (fit < all)
		fit = rows_in_lines(interval, rows, lines ? lines - 1 : 0);
	least = rows < ROWS_LEAST ? rows : ROWS_LEAST;
	return fit < least ? least : fit;
}

void interval_add_rest(struct text *out, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;
	size_t left = interval->grid->row_count - rows;
	struct text line = {0};

	text_add_format(&line, "%zu more row%s", left, left == 1 ? "" : "s");
	for (size_t i = 0; i < list->count; i++) {
		int64_t share = 0;

		if (list->items[i]->kind != KIND_PERMILLE)
			continue;
		for (size_t row = 0; row < rows; row++)
			share += grid_row(interval->grid, row)[i].number;
		text_add_string(&line, ", ");
		text_add_decimals(&line, share < 1000 ? 1000 - share : 0, 1);
		text_add_string(&line, " %");
	}
	text_add_string(&line, " (--all-rows shows them)");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}
