/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of --trace, grouped by the key columns of a report and by those that each kind has of
 * its own; in bounded memory. */
#ifndef TSNAP_REPORT_DISTRIBUTION_H
#define TSNAP_REPORT_DISTRIBUTION_H

#include "base/index.h"
#include "report/column_list.h"
#include "report/grid.h"
#include "report/tally.h"
#include "sample/trace_kind.h"

#define DISTRIBUTIONS_MAX 16384
#define TRACE_KINDS_MAX 16

struct distribution {
	const struct trace_kind *kind;
	struct histogram histogram;
	int64_t errors; /* events that failed */
	uint64_t next;	/* next one of equal hash, as index plus one */
};

/* Zeroed is an empty one without kinds. */
struct distribution_table {
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t kind_count;
	struct column_list keys;  /* keys of all kinds; absent where a kind lacks one */
	struct column_list shown; /* columns of the last grid */
	struct distribution *items;
	union value *values; /* keys.count of each */
	size_t count, capacity;
	struct index by_hash;
	int64_t refused;      /* events whose distribution did not fit since it was cleared */
	int64_t refused_ever; /* events whose distribution did not fit since the start */
	struct text buckets;  /* text of the last grid's rows */
};

/* kinds: kind_count of them, static. list: its keys are taken, but for times, which are the
 * samples' alone. */
void distribution_table_init(struct distribution_table *table,
			     const struct trace_kind *const *kinds, size_t kind_count,
			     const struct column_list *list);
/* Needs of the keys, NEED_*. */
uint64_t distribution_table_needs(const struct distribution_table *table);
/* Adds a histogram. who: the thread, with what the needs ask for. */
void distribution_table_add(struct distribution_table *table, const struct trace_kind *kind,
			    const struct sample *who, const struct histogram *histogram);
void distribution_table_clear(struct distribution_table *table);
void distribution_table_done(struct distribution_table *table);

/* For people: the kind's distributions, most time first; order (its count of them is returned)
 * becomes malloced. A column that all of them lack is left out, and where the interval is narrow
 * some percentiles. */
size_t distribution_grid_fill(struct distribution_table *table, const struct trace_kind *kind,
			      bool narrow, struct grid *grid, const struct distribution ***order);
/* For machines: all of them, always with the same columns. The grid's text lives until the next
 * such call. */
void distribution_rows_fill(struct distribution_table *table, const struct tally *tally,
			    struct grid *grid);
/* The columns of that. */
const struct column_list *distribution_rows_list(struct distribution_table *table);

#endif
