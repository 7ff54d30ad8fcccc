/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/group.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "base/index.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct group_slot {
	uint32_t hash;
	uint32_t group; /* its index plus one; 0: free */
};

#define SLOTS_FIRST 1024
#define KEY_MULTIPLIER 0x9e3779b97f4a7c15ull /* odd, 2^64 / the golden ratio */

void group_table_init(struct group_table *table, const struct column_list *list)
{
	*table = (struct group_table){.list = list};
	for (size_t i = 0; i < list->count; i++) {
		const struct column *column = list->items[i];

		if (column->role == ROLE_KEY)
			table->keys[table->key_count++] = column;
		else if (column->role != ROLE_MEASURE)
			table->folds[table->fold_count++] = column;
	}
	for (size_t i = 0, key = 0, fold = table->key_count + 2; i < list->count; i++) {
		if (list->items[i]->role == ROLE_KEY)
			table->word_of[i] = key++;
		else if (list->items[i]->role != ROLE_MEASURE)
			table->word_of[i] = fold++;
	}
	table->exact = column_list_needs(list) & NEEDS_OF_SUMS;
	for (int i = 0; table->exact && i < MEASURE_SUMS; i++)
		table->folds[table->fold_count++] = &measure_sums[i];
	table->stride = table->key_count + 2 + table->fold_count;
	table->slot_count = SLOTS_FIRST;
	table->slots = memory_get(table->slot_count * sizeof(*table->slots));
}

static void slots_grow(struct group_table *table)
{
	size_t count = table->slot_count * 2;
	struct group_slot *slots = memory_get(count * sizeof(*slots));

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

static union value *group_new(struct group_table *table, const void *sample)
{
	union value *group;

	table->words = memory_grow(table->words, &table->capacity, table->count + 1,
				   table->stride * sizeof(*table->words));
	group = table->words + table->count++ * table->stride;
	for (size_t i = 0; i < table->key_count; i++)
		group[i] = column_read(table->keys[i], sample);
	for (size_t i = table->key_count; i < table->stride; i++)
		group[i].number = i < table->key_count + 2 ? 0 : ABSENT;
	return group;
}

static bool group_fits(const struct group_table *table, const union value *group,
		       const void *sample)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < table->key_count; i++)
		differ |= (uint64_t)(group[i].number ^ column_read(table->keys[i], sample).number);
	return !differ;
}

/* The sample's group, made if there is room for it, else NULL. */
static union value *group_find(struct group_table *table, const void *sample, uint32_t hash)
{
	size_t mask = table->slot_count - 1, at = hash & mask;

	for (; table->slots[at].group; at = (at + 1) & mask) {
		union value *group = table->words + (table->slots[at].group - 1) * table->stride;

		if (table->slots[at].hash == hash && group_fits(table, group, sample))
			return group;
	}
	if (table->count == GROUPS_MAX)
		return NULL;
	if (table->count * 2 >= table->slot_count) {
		slots_grow(table);
		return group_find(table, sample, hash);
	}
	table->slots[at] = (struct group_slot){hash, (uint32_t)table->count + 1};
	return group_new(table, sample);
}

/* samples: 1, or 0 of an account */
static inline void sample_fold(struct group_table *table, const struct sample *sample,
			       int64_t samples)
{
	const void *from = sample;
	union value *group, *fold;
	struct sample_wide room;
	uint64_t hash = 0;

	if (table->list->wide)
		from = sample_widen(&room, sample);
	/* a multiplication tells keys apart; the bits are mixed once, at the end */
	for (size_t i = 0; i < table->key_count; i++)
		hash = ((hash << 29 | hash >> 35) ^
			(uint64_t)column_read(table->keys[i], from).number) *
		       KEY_MULTIPLIER;
	group = group_find(table, from, (uint32_t)hash_u64(hash));
	if (!group) {
		table->refused++;
		return;
	}
	group[table->key_count].number += samples;
	group[table->key_count + 1].number =
		sum(group[table->key_count + 1].number, sample->weight_us);
	fold = group + table->key_count + 2;
	for (size_t i = 0; i < table->fold_count; i++, fold++) {
		int64_t number = column_read(table->folds[i], from).number;

		if (table->folds[i]->role == ROLE_SUM)
			fold->number = sum(fold->number, number);
		else if (number > fold->number) /* absent is the least of all */
			fold->number = number;
	}
}

void group_table_add(struct group_table *table, const struct sample *sample)
{
	sample_fold(table, sample, 1);
}

void group_table_add_account(struct group_table *table, const struct sample *account)
{
	if (table->exact)
		sample_fold(table, account, 0);
}

void group_table_clear(struct group_table *table)
{
	memset(table->slots, 0, table->slot_count * sizeof(*table->slots));
	table->count = 0;
	table->refused = 0;
}

void group_table_done(struct group_table *table)
{
	free(table->slots);
	free(table->words);
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
	return table->exact ? group + table->stride - MEASURE_SUMS : NULL;
}

int64_t group_table_cpu_us(const struct group_table *table)
{
	int64_t cpu_us = 0;

	for (size_t i = 0; table->exact && i < table->count; i++)
		cpu_us = sum(cpu_us, group_sums(table, group_at(table, i))[SUM_CPU_US].number);
	return cpu_us;
}
