/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of --trace, grouped by the key columns of a report and by each kind's own key columns;
 * in bounded memory. */
#ifndef TSNAP_REPORT_DISTRIBUTION_H
#define TSNAP_REPORT_DISTRIBUTION_H

#include "base/index.h"
#include "report/report.h"
#include "sample/trace_kind.h"

#define DISTRIBUTIONS_MAX 16384

struct distribution {
	const struct trace_kind *kind;
	struct histogram histogram;
	struct histogram_split *split; /* that of the histogram; NULL: it has none */
	int64_t errors;		       /* events that failed */
	uint64_t next;		       /* next distribution of equal hash, as index plus one */
};

/* A row of distribution_rows_fill() that was recorded: what is needed of it to add it to others.
 * What durations consisted of can't be. */
struct recorded_distribution {
	const char *trace;
	int64_t count, errors, total_ns, max_ns, bytes, throttled_ns;
	int64_t sum, max, below; /* of numbers */
	const char *buckets;
	struct sample who; /* its keys; time_us: end of its interval */
};

extern const struct column recorded_distribution_columns[];
extern const size_t recorded_distribution_column_count;

/* A zeroed table is empty and has no kinds. */
struct distribution_table {
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t kind_count;
	struct column_list keys;  /* keys of all kinds; absent where a kind lacks one */
	struct column_list shown; /* columns of the last grid */
	struct distribution *items;
	union value *values; /* keys.count values of each distribution */
	size_t count, capacity;
	struct index by_hash;
	int64_t refused;     /* events whose distribution did not fit since the table was cleared */
	struct text buckets; /* text of the last grid's rows */
};

/* kinds: kind_count of them, static. list: the source of the keys; times are left out, as only
 * samples have them. */
void distribution_table_init(struct distribution_table *table,
			     const struct trace_kind *const *kinds, size_t kind_count,
			     const struct column_list *list);
/* Needs of the keys, NEED_*. */
uint64_t distribution_table_needs(const void *table);
/* Adds a histogram. who: the thread, with the facts that distribution_table_needs() names. */
void distribution_table_add(void *table, const struct trace_kind *kind, const struct sample *who,
			    const struct histogram *histogram);
/* Adds what a recording has of a distribution; as distribution_table_add(). False: the row is of no
 * distribution of tsnap's. */
bool distribution_add_recorded(struct distribution_table *table, const struct trace_kind *kind,
			       const struct recorded_distribution *recorded);
/* Adds a single event; who: as for distribution_table_add(). */
void distribution_add_event(struct distribution_table *table, const struct trace_kind *kind,
			    const struct sample *who, int64_t duration_ns);
void distribution_table_clear(void *table);
void distribution_table_done(void *table);

/* Fills a grid for people: the kind's distributions, most time first. Returns their count; order
 * becomes a malloced array of them. A column that all of them lack is left out, and some
 * percentiles if narrow. */
size_t distribution_grid_fill(struct distribution_table *table, const struct trace_kind *kind,
			      bool narrow, struct grid *grid, const struct distribution ***order);
/* Returns the stack of a distribution of a kind that has stacks, as the column `stack` has it,
 * which such a grid lacks; NULL: it has none. */
const char *distribution_stack(const struct distribution_table *table,
			       const struct distribution *distribution);
/* Fills a grid for programs: all distributions, always with the same columns. The grid's text lives
 * until the next such call. */
void distribution_rows_fill(struct distribution_table *table, const struct tally *tally,
			    struct grid *grid);
/* The columns of distribution_rows_fill(). */
const struct column_list *distribution_rows_list(struct distribution_table *table);

#endif
