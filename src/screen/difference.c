/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The difference of two grids of the same columns: what grew, what shrank. */
#include "screen/shown.h"
#include "report/value.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static uint64_t keys_hash(const struct column_list *list, const union value *row)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			hash = hash_u64(hash ^ (uint64_t)row[i].number);
	return hash;
}

/* Texts of one snapshot are equal if their addresses are. */
static bool keys_equal(const struct column_list *list, const union value *a, const union value *b)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY && a[i].number != b[i].number)
			return false;
	return true;
}

static bool is_number(const struct column *column)
{
	return column->role == ROLE_MEASURE || column->role == ROLE_SUM;
}

static int64_t minus(int64_t a, int64_t b)
{
	return a == ABSENT && b == ABSENT ? ABSENT : sum(sum(0, a), b == ABSENT ? 0 : -b);
}

static void row_subtract(const struct column_list *list, union value *row,
			 const union value *before)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_number(list->items[i]))
			row[i].number = minus(row[i].number, before[i].number);
}

static size_t row_find(const struct grid *grid, struct index *rows, const union value *keys)
{
	uint64_t hash = keys_hash(grid->list, keys), *at;

	for (; (at = index_find(rows, hash)); hash++)
		if (keys_equal(grid->list, grid_row(grid, *at), keys))
			return *at;
	return SIZE_MAX;
}

static void rows_index(const struct grid *grid, struct index *rows)
{
	for (size_t row = 0; row < grid->row_count; row++) {
		uint64_t hash = keys_hash(grid->list, grid_row(grid, row));

		while (index_find(rows, hash))
			hash++;
		*index_put(rows, hash, NULL) = row;
	}
}

/* Orders rows by their first number: it says how much the row has changed. */
static int change_compare(const void *a, const void *b, void *from)
{
	const struct column_list *list = from;
	const union value *x = a, *y = b;
	int64_t more = 0;

	for (size_t i = 0; !more && i < list->count; i++)
		if (is_number(list->items[i]) && x[i].number != ABSENT && y[i].number != ABSENT)
			more = llabs(y[i].number) - llabs(x[i].number);
	for (size_t i = 0; !more && i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			more = value_compare(list->items[i], x[i], y[i]);
	return (more > 0) - (more < 0);
}

void grid_subtract(struct grid *grid, const struct grid *before)
{
	const struct column_list *list = grid->list;
	size_t count = grid->row_count, bytes = list->count * sizeof(union value);
	struct index rows = {0};
	union value *last;

	rows_index(grid, &rows);
	for (size_t row = 0; row < before->row_count; row++) {
		const union value *old = grid_row(before, row);
		size_t at = row_find(grid, &rows, old);

		if (at != SIZE_MAX) {
			row_subtract(list, grid->values + at * list->count, old);
			continue;
		}
		grid_size(grid, list, ++count);
		last = grid->values + (count - 1) * list->count;
		memcpy(last, old, bytes);
		for (size_t i = 0; i < list->count; i++)
			if (is_number(list->items[i]) && old[i].number != ABSENT)
				last[i].number = -old[i].number;
	}
	index_clear(&rows);
	if (count)
		qsort_r(grid->values, count, bytes, change_compare, (void *)list);
}
