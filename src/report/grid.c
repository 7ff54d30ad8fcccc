/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/grid.h"
#include "report/group_parts.h"
#include "report/group_split.h"
#include "report/measure.h"
#include "report/tally.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void grid_size(struct grid *grid, const struct column_list *list, size_t row_count)
{
	size_t values = row_count * list->count;

	grid->values = memory_grow(grid->values, &grid->capacity, values, sizeof(*grid->values));
	grid->list = list;
	grid->row_count = row_count;
}

void grid_fill_rows(struct grid *grid, const struct column_list *list, const struct scan *scan)
{
	struct sample_wide scratch;
	union value *value;

	grid_size(grid, list, scan->count);
	value = grid->values;
	for (size_t row = 0; row < scan->count; row++) {
		const void *from = &scan->samples[row];

		if (list->wide)
			from = sample_widen(&scratch, from);
		for (size_t i = 0; i < list->count; i++)
			*value++ = column_read(list->items[i], from);
	}
}

static int64_t busy_us(const union value *sums)
{
	return sum(sum(0, sums[SUM_CPU_US].number),
		   sum(sums[SUM_DWAIT_US].number, sums[SUM_DEAD_CPU_US].number));
}

struct ordering {
	const struct group_table *groups;
	bool by_time; /* false: by samples */
};

static int group_compare(const void *a, const void *b, void *from)
{
	const struct ordering *ordering = from;
	const struct group_table *groups = ordering->groups;
	const union value *x = group_at(groups, *(const size_t *)a);
	const union value *y = group_at(groups, *(const size_t *)b);
	int64_t samples = group_samples(groups, y) - group_samples(groups, x), more;

	more = (group_weight_us(groups, y) > group_weight_us(groups, x)) -
	       (group_weight_us(groups, y) < group_weight_us(groups, x));
	if (!more || (!ordering->by_time && samples))
		more = samples;
	if (!more && groups->exact)
		more = (busy_us(group_sums(groups, y)) > busy_us(group_sums(groups, x))) -
		       (busy_us(group_sums(groups, y)) < busy_us(group_sums(groups, x)));
	for (size_t i = 0; !more && i < groups->key_count; i++)
		more = value_compare(groups->keys[i], x[i], y[i]);
	return (more > 0) - (more < 0);
}

/* True if the group has nothing to report: no samples, and its threads only slept. */
static bool group_idle(const struct group_table *groups, const union value *group)
{
	if (group_samples(groups, group) || (groups->split && group_weight_us(groups, group)))
		return false;
	return groups->exact ? measure_sums_idle(group_sums(groups, group)) : groups->split != NULL;
}

void grid_fill_groups(struct grid *grid, const struct group_table *table, const struct tally *tally)
{
	const struct column_list *list = table->list;
	struct group_parts parts = {0};
	const struct group_table *groups = table;
	struct ordering ordering = {.by_time = tally->shared_us};
	size_t count = 0, *order;
	union value *value;

	if (table->has_parts) {
		group_parts_fill(&parts, table, tally);
		groups = &parts.rows;
	}
	ordering.groups = groups;
	order = memory_get(groups->count * sizeof(*order));
	for (size_t row = 0; row < groups->count; row++)
		if (!group_idle(groups, group_at(groups, row)))
			order[count++] = row;
	qsort_r(order, count, sizeof(*order), group_compare, &ordering);
	grid_size(grid, list, count);
	value = grid->values;
	for (size_t row = 0; row < count; row++) {
		const union value *group = group_at(groups, order[row]);
		int64_t error_us = groups == table ? group_error_us(groups, order[row]) : ABSENT;
		struct measures measures =
			measures_of(group_samples(groups, group), group_weight_us(groups, group),
				    group_sums(groups, group), tally);

		if (error_us != ABSENT)
			measures.error = ratio(error_us, 1000, US_PER_SECOND);
		if (groups != table)
			group_parts_measure(&parts, order[row], tally, &measures);
		for (size_t i = 0; i < list->count; i++)
			*value++ = list->items[i]->role == ROLE_MEASURE
					   ? column_read(list->items[i], &measures)
					   : group[groups->word_of[i]];
	}
	free(order);
	group_parts_done(&parts);
}

struct sorting {
	const struct grid *grid;
	size_t at; /* index of the column */
};

static int row_compare(const void *a, const void *b, void *from)
{
	const struct sorting *sorting = from;
	const struct column *column = sorting->grid->list->items[sorting->at];
	size_t row = *(const size_t *)a, other = *(const size_t *)b;
	union value x = grid_row(sorting->grid, row)[sorting->at];
	union value y = grid_row(sorting->grid, other)[sorting->at];
	bool upwards = column->kind == KIND_TEXT || column->kind == KIND_STATE;
	int more = value_is_absent(column, x) - value_is_absent(column, y);

	if (!more)
		more = upwards ? value_compare(column, x, y) : value_compare(column, y, x);
	return more ? more : (row > other) - (row < other);
}

void grid_sort(struct grid *grid, const struct column *column)
{
	size_t width = grid->list->count,
	       *order = memory_get((grid->row_count + 1) * sizeof(*order));
	union value *sorted = memory_get((grid->row_count * width + 1) * sizeof(*sorted));
	struct sorting sorting = {.grid = grid};

	while (grid->list->items[sorting.at] != column)
		sorting.at++;
	for (size_t row = 0; row < grid->row_count; row++)
		order[row] = row;
	qsort_r(order, grid->row_count, sizeof(*order), row_compare, &sorting);
	for (size_t row = 0; row < grid->row_count; row++)
		memcpy(sorted + row * width, grid_row(grid, order[row]), width * sizeof(*sorted));
	memcpy(grid->values, sorted, grid->row_count * width * sizeof(*sorted));
	free(sorted);
	free(order);
}

const union value *grid_row(const struct grid *grid, size_t row)
{
	return grid->values + row * grid->list->count;
}

void grid_done(struct grid *grid)
{
	free(grid->values);
	*grid = (struct grid){0};
}
