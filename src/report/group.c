/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/group.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct group_slot {
	uint32_t hash;
	uint32_t group; /* index of the group plus one; 0: free */
};

#define SLOTS_FIRST 1024
#define KEY_MULTIPLIER 0x9e3779b97f4a7c15ull /* odd, 2^64 / the golden ratio */

/* Index of the column's field among the sums; MEASURE_SUMS: it is none of them. */
static size_t sum_slot(const struct column *column)
{
	size_t at = 0;

	while (at < MEASURE_SUMS && (column->role != ROLE_SUM || column_is_proc_value(column) ||
				     measure_sums[at].offset != column->offset))
		at++;
	return at;
}

/* Index of the word of a group that the column shows; a new fold if no other word has it. */
static size_t word_slot(struct group_table *table, const struct column *column)
{
	size_t first = table->key_count + 2, sum_at = sum_slot(column);

	if (column->role == ROLE_SUM && column->offset == offsetof(struct sample, scan.weight_us))
		return first - 1;
	if (table->exact && sum_at < MEASURE_SUMS)
		return first + sum_at;
	table->folds[table->fold_count] = column;
	return first + table->fold_count++;
}

static void keys_add(struct group_table *table, const char *names)
{
	struct text name = {0};

	while (names && text_next_name(&name, &names)) {
		const struct column *column = sample_column_find(text_string(&name));
		size_t at = 0;

		while (at < table->key_count && table->keys[at] != column)
			at++;
		table->keys[at] = column;
		table->key_count += at == table->key_count;
	}
	text_done(&name);
}

/* Adds the keys of measures that are made of parts: first those that distinguish rows, then those
 * of parts. */
static void part_keys_add(struct group_table *table)
{
	const struct part_measure *found[COLUMN_LIST_MAX];
	size_t count = 0;

	for (size_t i = 0; i < table->list->count; i++)
		if ((found[count] = part_measure_of(table->list->items[i])))
			count++;
	table->has_parts = count;
	for (size_t i = 0; i < count; i++) {
		keys_add(table, found[i]->rows);
		table->names_programs |= found[i]->rows != NULL;
	}
	table->row_keys = table->key_count;
	for (size_t i = 0; i < count; i++)
		keys_add(table, found[i]->parts);
}

void group_table_init(struct group_table *table, const struct column_list *list)
{
	*table = (struct group_table){.list = list};
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY) {
			table->word_of[i] = table->key_count;
			table->keys[table->key_count++] = list->items[i];
		}
	part_keys_add(table);
	table->exact = column_list_needs(list) & NEEDS_OF_SUMS;
	for (int i = 0; table->exact && i < MEASURE_SUMS; i++)
		table->folds[table->fold_count++] = &measure_sums[i];
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_SUM || list->items[i]->role == ROLE_MAX)
			table->word_of[i] = word_slot(table, list->items[i]);
	if (table->has_parts)
		table->state_us_word = word_slot(table, sample_column_find("state_us"));
	table->stride = table->key_count + 2 + table->fold_count;
	table->slot_count = SLOTS_FIRST;
	table->slots = memory_get(table->slot_count * sizeof(*table->slots));
}

void group_table_know_alike(struct group_table *table)
{
	table->by_alike = true;
	for (size_t i = 0; i < table->key_count; i++)
		table->by_alike &=
			table->keys[i]->offset != offsetof(struct sample, scan.time_us) &&
			table->keys[i]->offset != offsetof(struct sample, now.cpu) &&
			table->keys[i]->offset != offsetof(struct sample, waker.tid);
}

/* Doubles the slots when half of them are taken, so that a new group finds a free one. */
static void slots_grow(struct group_table *table)
{
	size_t count = table->slot_count * 2;
	struct group_slot *slots;

	if (table->count * 2 < table->slot_count)
		return;
	slots = memory_get(count * sizeof(*slots));

	for (size_t i = 0; i < table->slot_count; i++) {
		size_t at = table->slots[i].hash & (count - 1);

		if (!table->slots[i].group)
			continue;
		while (slots[at].group)
			at = (at + 1) & (count - 1);
		slots[at] = table->slots[i];
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = count;
}

static union value *group_new(struct group_table *table, const union value *keys)
{
	union value *group;

	table->words = memory_grow(table->words, &table->capacity, table->count + 1,
				   table->stride * sizeof(*table->words));
	group = table->words + table->count++ * table->stride;
	memcpy(group, keys, table->key_count * sizeof(*keys));
	for (size_t i = table->key_count; i < table->stride; i++)
		group[i].number = i < table->key_count + 2 ? 0 : ABSENT;
	return group;
}

static bool group_fits(const struct group_table *table, const union value *group,
		       const union value *keys)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < table->key_count; i++)
		differ |= (uint64_t)(group[i].number ^ keys[i].number);
	return !differ;
}

/* Finds or makes the group with these keys; NULL: the table is full. */
static union value *group_find(struct group_table *table, const union value *keys, uint32_t hash)
{
	size_t mask = table->slot_count - 1, at = hash & mask;

	for (; table->slots[at].group; at = (at + 1) & mask) {
		union value *group = table->words + (table->slots[at].group - 1) * table->stride;

		if (table->slots[at].hash == hash && group_fits(table, group, keys))
			return group;
	}
	if (table->count == GROUPS_MAX)
		return NULL;
	table->slots[at] = (struct group_slot){hash, (uint32_t)table->count + 1};
	return group_new(table, keys);
}

/* The multiplication makes hashes of different keys differ; bits are mixed once, at the end. */
static inline uint64_t hash_add(uint64_t hash, union value key)
{
	return ((hash << 29 | hash >> 35) ^ (uint64_t)key.number) * KEY_MULTIPLIER;
}

static uint32_t group_index(const struct group_table *table, const union value *group)
{
	return group ? (uint32_t)((size_t)(group - table->words) / table->stride) : GROUP_NONE;
}

uint32_t group_table_find(struct group_table *table, const union value *keys)
{
	uint64_t hash = 0;

	slots_grow(table);
	for (size_t i = 0; i < table->key_count; i++)
		hash = hash_add(hash, keys[i]);
	return group_index(table, group_find(table, keys, (uint32_t)hash_u64(hash)));
}

/* Adds the values that a group sums up; from: the sample, widened where the list is wide. */
static inline void group_fold(struct group_table *table, union value *group, const void *from,
			      int64_t samples, int64_t weight_us)
{
	union value *fold = group + table->key_count + 2 + table->fold_first;

	group[table->key_count].number += samples;
	group[table->key_count + 1].number = sum(group[table->key_count + 1].number, weight_us);
	for (size_t i = table->fold_first; i < table->fold_count; i++, fold++) {
		int64_t number = column_read(table->folds[i], from).number;

		if (table->folds[i]->role == ROLE_SUM)
			fold->number = sum(fold->number, number);
		else if (number > fold->number) /* absent is the least of all */
			fold->number = number;
	}
}

/* Adds to the group of a sample; samples: 1, or 0 for an account */
static inline union value *sample_fold(struct group_table *table, const struct sample *sample,
				       int64_t samples, int64_t weight_us)
{
	union value keys[COLUMN_LIST_MAX], *group;
	const void *from = sample;
	struct sample_wide scratch;
	uint64_t hash = 0;

	slots_grow(table);
	if (table->list->wide)
		from = sample_widen(&scratch, sample);
	for (size_t i = 0; i < table->key_count; i++) {
		keys[i] = column_read(table->keys[i], from);
		hash = hash_add(hash, keys[i]);
	}
	group = group_find(table, keys, (uint32_t)hash_u64(hash));
	if (!group) {
		table->refused++;
		return NULL;
	}
	group_fold(table, group, from, samples, weight_us);
	return group;
}

uint32_t group_table_fold(struct group_table *table, const struct sample *sample, int64_t samples,
			  int64_t weight_us)
{
	return group_index(table, sample_fold(table, sample, samples, weight_us));
}

void group_table_fold_into(struct group_table *table, uint32_t index, const struct sample *sample,
			   int64_t samples, int64_t weight_us)
{
	union value *group = table->words + index * table->stride;
	struct sample_wide scratch;

	if (table->fold_first == table->fold_count && weight_us == ABSENT) {
		group[table->key_count].number += samples;
		return;
	}
	group_fold(table, group,
		   table->list->wide ? sample_widen(&scratch, sample) : (const void *)sample,
		   samples, weight_us);
}

void group_table_add(struct group_table *table, const struct sample *sample)
{
	sample_fold(table, sample, sample_scans(sample), sample->scan.weight_us);
}

void group_table_add_account(struct group_table *table, const struct sample *account)
{
	if (table->split)
		group_split_add_account(table, account);
	else if (table->exact)
		sample_fold(table, account, 0, ABSENT);
}

void group_table_init_rows(struct group_table *rows, const struct group_table *parts)
{
	*rows = *parts;
	rows->key_count = rows->row_keys;
	rows->stride -= parts->key_count - parts->row_keys;
	for (size_t i = 0; i < rows->list->count; i++)
		if (rows->word_of[i] >= parts->key_count)
			rows->word_of[i] -= parts->key_count - parts->row_keys;
	rows->split = NULL;
	rows->alike = NULL;
	rows->words = NULL;
	rows->count = rows->capacity = 0;
	rows->slots = memory_get(rows->slot_count * sizeof(*rows->slots));
}

size_t group_table_merge(struct group_table *rows, const struct group_table *parts, size_t part)
{
	const union value *from = group_at(parts, part);
	uint32_t row = group_table_find(rows, from);
	union value *to = rows->words + row * rows->stride + rows->key_count;

	from += parts->key_count;
	for (size_t i = 0; i < 2 + rows->fold_count; i++)
		if (i < 2 || rows->folds[i - 2]->role == ROLE_SUM)
			to[i].number = sum(to[i].number, from[i].number);
		else if (from[i].number > to[i].number)
			to[i] = from[i];
	return row;
}

void group_table_clear(struct group_table *table)
{
	memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
	table->count = 0;
	table->refused = 0;
	free(table->alike);
	table->alike = NULL;
	group_split_clear(table);
}

void group_table_done(struct group_table *table)
{
	free(table->slots);
	free(table->words);
	free(table->alike);
	group_split_done(table);
	*table = (struct group_table){0};
}

const union value *group_at(const struct group_table *table, size_t index)
{
	return table->words + index * table->stride;
}

int64_t group_samples(const struct group_table *table, const union value *group)
{
	return group[table->key_count].number;
}

int64_t group_weight_us(const struct group_table *table, const union value *group)
{
	return group[table->key_count + 1].number;
}

const union value *group_sums(const struct group_table *table, const union value *group)
{
	return table->exact ? group + table->key_count + 2 : NULL;
}

int64_t group_table_cpu_us(const struct group_table *table)
{
	int64_t cpu_us = 0;

	for (size_t i = 0; table->exact && i < table->count; i++)
		cpu_us = sum(cpu_us, group_sums(table, group_at(table, i))[SUM_CPU_US].number);
	return cpu_us;
}
