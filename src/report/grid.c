/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/grid.h"
#include "report/measure.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "base/memory.h"

#include <stdlib.h>

void grid_size(struct grid *grid, const struct column_list *list, size_t row_count)
{
	size_t values = row_count * list->count;

	grid->values = memory_grow(grid->values, &grid->capacity, values, sizeof(*grid->values));
	grid->list = list;
	grid->row_count = row_count;
}

void grid_fill_rows(struct grid *grid, const struct column_list *list, const struct scan *scan)
{
	struct sample_wide room;
	union value *value;

	grid_size(grid, list, scan->count);
	value = grid->values;
	for (size_t row = 0; row < scan->count; row++) {
		const void *from = &scan->samples[row];

		if (list->wide)
			from = sample_widen(&room, from);
		for (size_t i = 0; i < list->count; i++)
			*value++ = column_read(list->items[i], from);
	}
}

static int64_t busy_us(const union value *sums)
{
	return sum(sum(0, sums[SUM_CPU_US].number),
		   sum(sums[SUM_DWAIT_US].number, sums[SUM_DEAD_CPU_US].number));
}

static int group_compare(const void *a, const void *b, void *from)
{
	const struct group_table *groups = from;
	const union value *x = *(const union value *const *)a, *y = *(const union value *const *)b;
	int64_t more = group_samples(groups, y) - group_samples(groups, x);

	if (!more)
		more = group_weight_us(groups, y) > group_weight_us(groups, x)
			       ? 1
			       : -(group_weight_us(groups, y) < group_weight_us(groups, x));
	if (!more && groups->exact)
		more = (busy_us(group_sums(groups, y)) > busy_us(group_sums(groups, x))) -
		       (busy_us(group_sums(groups, y)) < busy_us(group_sums(groups, x)));
	for (size_t i = 0; !more && i < groups->key_count; i++)
		more = value_compare(groups->keys[i], x[i], y[i]);
	return (more > 0) - (more < 0);
}

/* Whether there is nothing to tell of it: it has no samples, and its threads only slept. */
static bool group_idle(const struct group_table *groups, const union value *group)
{
	return !group_samples(groups, group) && groups->exact &&
	       measure_sums_idle(group_sums(groups, group));
}

void grid_fill_groups(struct grid *grid, const struct group_table *groups,
		      const struct tally *tally)
{
	const struct column_list *list = groups->list;
	const union value **order = memory_get(groups->count * sizeof(union value *));
	size_t count = 0;
	union value *value;

	for (size_t row = 0; row < groups->count; row++)
		if (!group_idle(groups, group_at(groups, row)))
			order[count++] = group_at(groups, row);
	qsort_r(order, count, sizeof(union value *), group_compare, (void *)groups);
	grid_size(grid, list, count);
	value = grid->values;
	for (size_t row = 0; row < count; row++) {
		const union value *group = order[row];
		struct measures measures =
			measures_of(group_samples(groups, group), group_weight_us(groups, group),
				    group_sums(groups, group), tally);

		for (size_t i = 0; i < list->count; i++)
			*value++ = list->items[i]->role == ROLE_MEASURE
					   ? column_read(list->items[i], &measures)
					   : group[groups->word_of[i]];
	}
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
