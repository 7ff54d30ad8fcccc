/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups samples by the key columns of a list, in bounded memory: the inner loop of a report. */
#ifndef TSNAP_REPORT_GROUP_H
#define TSNAP_REPORT_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "report/column_list.h"
#include "report/measure.h"
#include "sample/sample.h"

#define GROUPS_MAX (1u << 18)

struct group_slot;

struct group_table {
	const struct column_list *list;
	const struct column *keys[COLUMN_LIST_MAX];
	const struct column *folds[COLUMN_LIST_MAX + MEASURE_SUMS];
	size_t key_count, fold_count;
	bool exact;			 /* the last folds are the measures' sums */
	size_t word_of[COLUMN_LIST_MAX]; /* of the list's column, in a group; not of measures */
	/* Groups lie behind each other: the keys, samples, weight_us, the folds. */
	union value *words;
	size_t stride, count, capacity;
	struct group_slot *slots;
	size_t slot_count;
	int64_t refused; /* samples whose group did not fit */
};

/* list must outlive the table. */
void group_table_init(struct group_table *table, const struct column_list *list);
void group_table_add(struct group_table *table, const struct sample *sample);
/* What is told of threads besides their samples; nothing where no column asks for that. */
void group_table_add_account(struct group_table *table, const struct sample *account);
void group_table_clear(struct group_table *table); /* drops the groups, keeps the memory */
void group_table_done(struct group_table *table);

const union value *group_at(const struct group_table *table, size_t index);
int64_t group_samples(const struct group_table *table, const union value *group);
int64_t group_weight_us(const struct group_table *table, const union value *group);
/* Exact CPU time of all groups; 0: nobody counted. */
int64_t group_table_cpu_us(const struct group_table *table);
/* MEASURE_SUMS values; NULL: no column asks for them. */
const union value *group_sums(const struct group_table *table, const union value *group);

#endif
