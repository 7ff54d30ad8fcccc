/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chosen columns times rows of values: all that a renderer sees of samples and groups. */
#ifndef TSNAP_REPORT_GRID_H
#define TSNAP_REPORT_GRID_H

#include <stddef.h>

#include "report/column_list.h"
#include "report/group.h"
#include "report/tally.h"

/* Zeroed is an empty one. Values are the grid's own, but for the interned text. */
struct grid {
	const struct column_list *list;
	union value *values; /* rows of list->count values each */
	size_t row_count, capacity;
};

/* Each replaces what the grid held. The first makes room for rows that the caller fills. */
void grid_size(struct grid *grid, const struct column_list *list, size_t row_count);
void grid_fill_rows(struct grid *grid, const struct column_list *list, const struct scan *scan);
/* Sorted: most samples first, equal ones by their keys. */
void grid_fill_groups(struct grid *grid, const struct group_table *groups,
		      const struct tally *tally);
const union value *grid_row(const struct grid *grid, size_t row);
void grid_done(struct grid *grid);

#endif
