/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups samples by the key columns of a list, in bounded memory: the inner loop of a report. */
#ifndef TSNAP_REPORT_GROUP_H
#define TSNAP_REPORT_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "report/column_list.h"
#include "report/measure.h"
#include "sample/sample.h"

#define GROUPS_MAX (1u << 17) /* limit of groups; with their names some 40 MB */
#define GROUP_NONE UINT32_MAX

struct group_slot;
struct group_split;

struct group_table {
	const struct column_list *list;
	const struct column *keys[COLUMN_LIST_MAX];
	const struct column *folds[COLUMN_LIST_MAX + MEASURE_SUMS];
	size_t key_count, fold_count;
	bool has_parts;	      /* groups are parts of the grid's rows (grid.c) */
	size_t row_keys;      /* keys of these rows; the others are of their parts */
	size_t state_us_word; /* index of the longest state_us of a part */
	bool names_programs;  /* the list has the measure `program` */
	bool calls_unknown;   /* set by the owner: samples don't say whether they are in a call */
	bool exact;	      /* the first folds are the measures' sums */
	size_t fold_first;    /* folds before this one are shared out instead */
	size_t word_of[COLUMN_LIST_MAX]; /* index of a column's word; none for measures */
	/* Words of all groups, one group after the other: keys, samples, weight_us, folds. */
	union value *words;
	size_t stride, count, capacity;
	struct group_slot *slots;
	size_t slot_count;
	int64_t refused;	   /* samples whose group did not fit */
	struct group_split *split; /* group_split.h; NULL: samples are counted */
	/* Groups and shares of samples by their number (struct sample_scan, alike). NULL: there
	 * were no such samples, or they are not told apart by it */
	struct group_alike *alike;
	bool by_alike;
};

/* list must outlive the table. */
void group_table_init(struct group_table *table, const struct column_list *list);
/* Has samples that are alike found by that, if the keys allow it. Call after group_table_init(),
 * where samples are added with the keys that the source gave them. */
void group_table_know_alike(struct group_table *table);
/* Adds a sample, in a table that counts samples. */
void group_table_add(struct group_table *table, const struct sample *sample);
/* Adds an account of threads; does nothing where no column needs it. */
void group_table_add_account(struct group_table *table, const struct sample *account);
void group_table_clear(struct group_table *table); /* drops the groups, keeps the memory */
void group_table_done(struct group_table *table);

const union value *group_at(const struct group_table *table, size_t index);
/* Functions for group_split.c. group_table_fold() adds a sample, or an account (samples: 0), with
 * that weight and returns the index of its group; GROUP_NONE: it did not fit.
 * group_table_fold_into() adds it to a known group. group_table_find() finds or makes the group
 * with these values of the table's keys. */
uint32_t group_table_fold(struct group_table *table, const struct sample *sample, int64_t samples,
			  int64_t weight_us);
void group_table_fold_into(struct group_table *table, uint32_t index, const struct sample *sample,
			   int64_t samples, int64_t weight_us);
uint32_t group_table_find(struct group_table *table, const union value *keys);
/* Functions for grid.c. Begins a table for the rows of a table of parts; adds a part to its
 * row, whose index it returns. */
void group_table_init_rows(struct group_table *rows, const struct group_table *parts);
size_t group_table_merge(struct group_table *rows, const struct group_table *parts, size_t part);
/* Functions of group_split.c, whose state is part of the table. */
void group_split_add_account(struct group_table *table, const struct sample *account);
void group_split_clear(struct group_table *table);
void group_split_done(struct group_table *table);
int64_t group_samples(const struct group_table *table, const union value *group);
int64_t group_weight_us(const struct group_table *table, const union value *group);
/* Exact CPU time of all groups; 0: not counted. */
int64_t group_table_cpu_us(const struct group_table *table);
/* The group's MEASURE_SUMS values; NULL: no column needs them. */
const union value *group_sums(const struct group_table *table, const union value *group);

#endif
