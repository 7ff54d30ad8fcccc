/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/report_rows.h"
#include "report/measure.h"
#include "report/value.h"

#define SHARE_LEAST 5 /* per mille: rows with less are summed up in one */
#define ROWS_LEAST 3  /* least number of rows in a window of any height */
#define OWN_LINES 2   /* lines of the titles, and of the prompt after the report */

/* The column by which rows are small; NULL: no small row is left out, either because there is no
 * such column, or because rows have exact times, which may be large where the share of the samples
 * is small. */
static const struct column *const *share_column(const struct column_list *list)
{
	const struct column *const *found = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct column *column = list->items[i];

		if (column->role == ROLE_MEASURE && column->needs & NEEDS_OF_SUMS)
			return NULL;
		if (column->kind == KIND_PERMILLE || (column->kind == KIND_THREADS && !found))
			found = &list->items[i];
	}
	return found;
}

static int64_t share_of(const struct interval *interval, const struct column *const *share,
			size_t row)
{
	return grid_row(interval->grid, row)[share - interval->grid->list->items].number;
}

/* Sum of the column in the rows from `row` on. */
static int64_t share_from(const struct interval *interval, const struct column *const *share,
			  size_t row)
{
	int64_t all = 0;

	for (; row < interval->grid->row_count; row++)
		all = sum(all, share_of(interval, share, row));
	return all;
}

/* The least share of a row that is not small. */
static int64_t share_least(const struct interval *interval, const struct column *const *share)
{
	return (*share)->kind == KIND_PERMILLE
		       ? SHARE_LEAST
		       : (share_from(interval, share, 0) * SHARE_LEAST + 999) / 1000;
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

	if (share && (interval->height || interval->rows_folded))
		for (int64_t small = share_least(interval, share);
		     rows && share_of(interval, share, rows - 1) < small; rows--)
			;
	/* a line in place of one row takes as much height as the row */
	if (!rows || rows + 1 >= all)
		rows = all;
	if (!interval->height)
		return interval->row_limit && rows > interval->row_limit ? interval->row_limit
									 : rows;
	fit = rows_in_lines(interval, rows, lines);
	if (fit < all)
		if (!interval->height)
			return interval->row_limit && rows > interval->row_limit
				       ? interval->row_limit
				       : rows;
	fit = rows_in_lines(interval, rows, lines ? lines - 1 : 0);
	least = rows < ROWS_LEAST ? rows : ROWS_LEAST;
	return fit < least ? least : fit;
}

/* Adds the share of the rows that are left out, as that of all without the others. */
static void add_shares(struct text *line, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;

	for (size_t i = 0; i < list->count; i++) {
		int64_t share = 0;

		if (list->items[i]->kind != KIND_PERMILLE)
			continue;
		for (size_t row = 0; row < rows; row++)
			share += grid_row(interval->grid, row)[i].number;
		text_add_string(line, ", ");
		text_add_decimals(line, share < 1000 ? 1000 - share : 0, 1);
		text_add_string(line, " %");
	}
}

static bool lists_programs(const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_MEASURE &&
		    list->items[i]->offset == offsetof(struct measures, program))
			return true;
	return false;
}

void interval_add_rest(struct text *out, const struct interval *interval, size_t rows)
{
	const struct column *const *share = share_column(interval->grid->list);
	size_t left = interval->grid->row_count - rows;
	bool programs = lists_programs(interval->grid->list);
	struct text line = {0};

	text_add_format(&line, "%zu more %s%s", left, programs ? "program" : "row",
			left == 1 ? "" : "s");
	add_shares(&line, interval, rows);
	if (share && (*share)->kind == KIND_THREADS && share_from(interval, share, rows)) {
		text_add_string(&line, " with ");
		text_add_decimals(&line, share_from(interval, share, rows), 2);
		text_add_string(&line, " threads");
	}
	text_add_string(&line, programs ? ": --all-rows" : " (--all-rows shows them)");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}
