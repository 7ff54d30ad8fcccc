/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chosen columns and rows of values: all that a renderer sees of samples and groups. */
#ifndef TSNAP_REPORT_GRID_H
#define TSNAP_REPORT_GRID_H

#include <stddef.h>

#include "report/column_list.h"
#include "report/group.h"
#include "report/tally.h"

/* A zeroed grid is empty. Values are the grid's own, except interned text. */
struct grid {
	const struct column_list *list;
	union value *values; /* rows of list->count values each */
	size_t row_count, capacity;
};

/* Functions that replace the contents of the grid. grid_size() allocates rows that the caller
 * fills. */
void grid_size(struct grid *grid, const struct column_list *list, size_t row_count);
void grid_fill_rows(struct grid *grid, const struct column_list *list, const struct scan *scan);
/* Fills sorted groups: most samples first, equal ones by their keys. */
void grid_fill_groups(struct grid *grid, const struct group_table *groups,
		      const struct tally *tally);
/* Sorts the rows by a column of the list: text and states in their order, all else with the largest
 * first, absent values last; equal ones stay in their order. */
void grid_sort(struct grid *grid, const struct column *column);
const union value *grid_row(const struct grid *grid, size_t row);
void grid_done(struct grid *grid);

/* What a sample waits for, in short, as the measure waits_for has it; folded: with * for what
 * differs in waits of one kind. NULL: it does not wait, or that is not known. */
const char *sample_waits_for(const struct sample *sample, bool folded);

#endif
