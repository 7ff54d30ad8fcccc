/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/group_split.h"
#include "report/tally.h"
#include "report/value.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TIME_ON == SUM_CPU_US && (int)TIME_RQ == SUM_RUNQ_US &&
		       (int)TIME_DISK == SUM_DWAIT_US && (int)TIME_ASLEEP == SUM_SLEEP_US,
	       "times are the first sums, in this order");

#define SHARES_MAX (1u << 19)
#define SHARES_SEARCHED 8 /* newest of a part; beyond them a group may have a second share */

/* Samples of one thread and state in one group. */
struct group_share {
	int64_t weight_us;
	uint32_t part, group;
	uint32_t episodes; /* see struct exact_part */
	uint32_t next;	   /* older share of the same part, plus one */
};

struct group_split {
	struct exact_times *times;
	enum split_rest rest;
	bool errors;	  /* standard errors are computed */
	bool varies;	  /* groups have a key that only samples have */
	size_t state_key; /* index of the key `state`; COLUMN_LIST_MAX: it is no key */
	struct group_share *shares;
	size_t count, capacity;
	uint32_t *newest; /* newest share of each part, plus one */
	size_t part_count, part_capacity;
	double *variances; /* variances of the groups' weights, in us * us */
	size_t variance_count, variance_capacity;
};

/* Rest of a part that is not shared out yet, so that rounding loses nothing. */
struct part_left {
	int64_t us, sampled_us;
};

static bool is_error(const struct column *column)
{
	return column->role == ROLE_MEASURE && column->offset == offsetof(struct measures, error);
}

void group_table_split(struct group_table *table, struct exact_times *times, enum split_rest rest)
{
	struct group_split *split = memory_get(sizeof(*split));

	split->times = times;
	split->rest = rest;
	split->state_key = COLUMN_LIST_MAX;
	for (size_t i = 0; i < table->key_count; i++) {
		if (table->keys[i]->offset == offsetof(struct sample, now.state))
			split->state_key = i;
		else
			split->varies |= !column_is_kept(table->keys[i]);
	}
	for (size_t i = 0; i < table->list->count; i++)
		split->errors |= is_error(table->list->items[i]);
	table->split = split;
	times->tables[times->table_count++] = table;
	if (table->exact)
		table->fold_first = TIME_KINDS;
}

/* The sum of a kind of time in a group; NULL: the table has no such sums. */
static union value *time_sum(struct group_table *table, size_t group, int kind)
{
	return table->exact ? table->words + group * table->stride + table->key_count + 2 + kind
			    : NULL;
}

static void group_give(struct group_table *table, size_t group, int64_t us)
{
	size_t weight = group * table->stride + table->key_count + 1;

	if (table->words)
		table->words[weight].number = sum(table->words[weight].number, us);
}

static void parts_grow(struct group_split *split, size_t count)
{
	if (count <= split->part_count)
		return;
	split->newest =
		memory_grow(split->newest, &split->part_capacity, count, sizeof(*split->newest));
	memset(split->newest + split->part_count, 0,
	       (count - split->part_count) * sizeof(*split->newest));
	split->part_count = count;
}

static struct group_share *share_find(struct group_split *split, uint32_t part, uint32_t group)
{
	uint32_t at, *newest;
	int searched = 0;

	parts_grow(split, split->times->count * TIME_KINDS);
	newest = &split->newest[part];
	for (at = *newest; at && searched++ < SHARES_SEARCHED; at = split->shares[at - 1].next)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): at is no 0 */
		if (split->shares[at - 1].group == group)
			return &split->shares[at - 1];
	split->shares = memory_grow(split->shares, &split->capacity, split->count + 1,
				    sizeof(*split->shares));
	split->shares[split->count] =
		(struct group_share){.part = part, .group = group, .next = *newest};
	*newest = (uint32_t)++split->count;
	return &split->shares[split->count - 1];
}

static void share_add(struct group_table *table, struct group_share *share,
		      const struct sample *sample, bool began)
{
	struct group_split *split = table->split;

	share->weight_us = sum(share->weight_us, sample->scan.weight_us);
	share->episodes += began || !share->episodes;
	if (split->rest != REST_NOWHERE)
		split->times->threads[share->part / TIME_KINDS].group = share->group + 1;
}

#define ALIKE_BITS 15
#define LINE_WORDS 8 /* of a group in a line of the CPU's caches */

/* The group of samples that are alike, and their share of one part. */
struct group_alike {
	uint32_t number; /* see struct sample_scan; 0: none */
	uint32_t group, share;
};

/* Where the sample's number is, or belongs; NULL: it can't be found by it. */
static struct group_alike *alike_of(struct group_table *table, const struct sample *sample)
{
	if (!table->by_alike || !sample->scan.alike)
		return NULL;
	if (!table->alike)
		table->alike = memory_get(sizeof(*table->alike) << ALIKE_BITS);
	return &table->alike[sample->scan.alike & ((1u << ALIKE_BITS) - 1)];
}

/* Adds to the group of a sample that is shared out. */
static uint32_t alike_fold(struct group_table *table, const struct sample *sample,
			   struct group_alike *alike)
{
	uint32_t group;

	if (alike && alike->number == sample->scan.alike) {
		group_table_fold_into(table, alike->group, sample, sample_scans(sample), ABSENT);
		return alike->group;
	}
	group = group_table_fold(table, sample, sample_scans(sample), ABSENT);
	if (alike && group != GROUP_NONE)
		*alike = (struct group_alike){sample->scan.alike, group, GROUP_NONE};
	return group;
}

void group_table_prefetch(struct group_table *table, const struct sample *sooner,
			  const struct sample *later)
{
	const struct group_alike *alike = alike_of(table, sooner);
	const union value *group;

	if (alike && alike->number == sooner->scan.alike && alike->share < table->split->count) {
		group = table->words + alike->group * table->stride;
		__builtin_prefetch(&table->split->shares[alike->share], 1);
		for (size_t i = table->key_count; i < table->stride; i += LINE_WORDS)
			__builtin_prefetch(group + i, 1);
	}
	alike = alike_of(table, later);
	if (alike)
		__builtin_prefetch(alike, 1);
}

uint32_t group_table_add_noted(struct group_table *table, const struct sample *sample,
			       struct exact_note note)
{
	struct group_split *split = table->split;
	struct group_alike *alike = alike_of(table, sample);
	struct group_share *share;
	uint32_t group;

	if (!split || note.part == EXACT_PART_NONE) {
		group_table_add(table, sample);
		return GROUP_NONE;
	}
	group = alike_fold(table, sample, alike);
	if (group == GROUP_NONE)
		return GROUP_NONE;
	share = alike && alike->share < split->count ? &split->shares[alike->share] : NULL;
	if (!share || share->part != note.part || share->group != group)
		share = share_find(split, note.part, group);
	share_add(table, share, sample, note.began);
	if (alike)
		alike->share = (uint32_t)(share - split->shares);
	return (uint32_t)(share - split->shares);
}

void group_table_add_again(struct group_table *table, const struct sample *sample, uint32_t share,
			   bool began)
{
	struct group_share *found = &table->split->shares[share];

	group_table_fold_into(table, found->group, sample, sample_scans(sample), ABSENT);
	share_add(table, found, sample, began);
}

/* Kind of time that the account has most of; -1: none. */
static int account_kind(const struct sample *account, int64_t us[TIME_KINDS])
{
	int most = -1;

	us[TIME_ON] = account->sums.cpu_us;
	us[TIME_RQ] = account->sums.runq_us;
	us[TIME_DISK] = account->sums.dwait_us;
	us[TIME_ASLEEP] = account->sums.sleep_us;
	for (int kind = 0; kind < TIME_KINDS; kind++)
		if (us[kind] > 0 && (most < 0 || us[kind] > us[most]))
			most = kind;
	return most;
}

/* Adds time that no sample saw. */
static void rest_add(struct group_table *table, uint32_t group, int kind, int64_t us)
{
	struct exact_times *times = table->split->times;
	union value *time = group == GROUP_NONE ? NULL : time_sum(table, group, kind);

	if (group == GROUP_NONE)
		return;
	if (time)
		time->number = sum(time->number, us);
	if (!(times->shared >> kind & 1))
		return;
	group_give(table, group, us);
	times->all_us[kind] = sum(times->all_us[kind], us);
}

/* Finds the group for time of that kind that no sample saw; group: any group of the threads. */
static uint32_t rest_group(struct group_table *table, uint32_t group, int kind)
{
	const struct group_split *split = table->split;
	union value keys[COLUMN_LIST_MAX] = {{0}};

	for (size_t i = 0; i < table->key_count; i++) {
		const struct column *column = table->keys[i];

		if (i == split->state_key)
			keys[i].number = time_kind_state(kind);
		else if (column_is_kept(column))
			keys[i] = table->words[group * table->stride + i];
		else if (column->kind == KIND_TEXT)
			keys[i].text = NULL;
		else
			keys[i].number = ABSENT;
	}
	return group_table_find(table, keys);
}

void group_split_add_account(struct group_table *table, const struct sample *account)
{
	struct group_split *split = table->split;
	uint32_t slot = exact_times_add_account(split->times, account), group;
	struct sample stated = *account;
	int64_t us[TIME_KINDS];
	int most = account_kind(account, us);

	if (most < 0 && !table->exact)
		return;
	/* other values of the account go to the group of the kind with most time */
	stated.now.state = most < 0 ? ABSENT : time_kind_state(most);
	group = group_table_fold(table, &stated, 0, ABSENT);
	if (group == GROUP_NONE)
		return;
	if (slot != EXACT_PART_NONE) {
		if (!split->times->threads[slot].group)
			split->times->threads[slot].group = group + 1;
		return;
	}
	for (int kind = 0; kind < TIME_KINDS; kind++)
		if (us[kind] > 0)
			rest_add(table, rest_group(table, group, kind), kind, us[kind]);
}

bool group_table_crowded(const struct group_table *table)
{
	return table->split && table->split->count >= SHARES_MAX;
}

/* True if a thread had much more time than its samples stand for. Then it was hidden from them, as
 * sleepers are without -a, and those of its samples that slept are not all of its sleep. */
static bool thread_hidden(const struct exact_times *times, const struct exact_thread *thread)
{
	int64_t us = 0, sampled_us = 0;

	for (int kind = 0; kind < TIME_KINDS; kind++) {
		if (!(times->shared >> kind & 1))
			continue;
		us = sum(us, thread->parts[kind].us);
		sampled_us = sum(sampled_us, thread->parts[kind].sampled_us);
	}
	return us / 5 > sampled_us / 4;
}

/* True if the groups of a part are weighed by its exact times. */
static bool part_shared(const struct exact_times *times, uint32_t part)
{
	const struct exact_thread *thread = &times->threads[part / TIME_KINDS];
	int kind = (int)(part % TIME_KINDS);

	return times->shared >> kind & 1 && thread->parts[kind].us != ABSENT &&
	       !(kind == TIME_ASLEEP && thread->parts[kind].sampled_us &&
		 thread_hidden(times, thread));
}

static void variance_add(struct group_table *table, const struct group_share *share, bool shared)
{
	struct group_split *split = table->split;
	const struct exact_part *part =
		&split->times->threads[share->part / TIME_KINDS].parts[share->part % TIME_KINDS];
	double seen = share->episodes, of = part->episodes > seen ? part->episodes : seen, likely;
	int64_t followed_us, open_us;

	/* a group found in x of n looks is taken to have (x + 1) / (n + 2) of the time, so that one
	 * look is not certainty. Without an exact time the number of looks varies, too. */
	likely = (seen + 1) / (of + 2);
	/* time that samples followed from one scan to the next is known */
	followed_us = part->sampled_us - ratio(split->times->weight_us, part->episodes, 1);
	open_us = part->us > followed_us ? part->us - followed_us : 0;
	if (!shared)
		split->variances[share->group] +=
			(double)share->weight_us * (double)share->weight_us / seen;
	else if (split->varies)
		split->variances[share->group] +=
			(double)open_us * (double)open_us * likely * (1 - likely) / of;
}

static void share_give(struct group_table *table, const struct group_share *share,
		       struct part_left *left)
{
	struct exact_times *times = table->split->times;
	int kind = (int)(share->part % TIME_KINDS);
	bool shared = part_shared(times, share->part);
	union value *time = time_sum(table, share->group, kind);
	int64_t us = ABSENT;

	if (left->us != ABSENT) {
		us = ratio(left->us, share->weight_us, left->sampled_us);
		left->us -= us;
		left->sampled_us -= share->weight_us;
	}
	if (time)
		time->number = sum(time->number, us);
	group_give(table, share->group, shared ? us : share->weight_us);
	if (table->split->errors)
		variance_add(table, share, shared);
}

static void shares_give(struct group_table *table)
{
	struct group_split *split = table->split;
	struct exact_times *times = split->times;
	struct part_left *left = memory_get((times->count * TIME_KINDS + 1) * sizeof(*left));

	for (size_t part = 0; part < times->count * TIME_KINDS; part++) {
		const struct exact_part *of =
			&times->threads[part / TIME_KINDS].parts[part % TIME_KINDS];

		left[part] = (struct part_left){of->us, of->sampled_us};
	}
	for (size_t i = 0; i < split->count; i++)
		share_give(table, &split->shares[i], &left[split->shares[i].part]);
	free(left);
}

/* Adds 0 for a thread that is known to have had no such time: groups of threads then show 0 rather
 * than nothing. */
static void zero_add(struct group_table *table, uint32_t group, int kind)
{
	union value *time = time_sum(table, group, kind);

	if (time && !table->split->varies && table->split->state_key == COLUMN_LIST_MAX)
		time->number = sum(time->number, 0);
}

/* Splits the times of threads into those that samples saw, and others, which get groups. */
static void rests_give(struct group_table *table)
{
	struct exact_times *times = table->split->times;

	for (uint32_t part = 0; part < times->count * TIME_KINDS; part++) {
		const struct exact_thread *thread = &times->threads[part / TIME_KINDS];
		int kind = (int)(part % TIME_KINDS);
		const struct exact_part *of = &thread->parts[kind];

		if (of->us == ABSENT || !thread->group ||
		    (!table->exact && !(times->shared >> kind & 1)))
			continue;
		if (!of->us) {
			zero_add(table, thread->group - 1, kind);
			continue;
		}
		if (!of->sampled_us && table->split->rest == REST_LEFT_OUT)
			continue;
		if (!of->sampled_us) {
			rest_add(table, rest_group(table, thread->group - 1, kind), kind, of->us);
		} else if (part_shared(times, part)) {
			times->all_us[kind] = sum(times->all_us[kind], of->us);
			times->covered_us[kind] = sum(times->covered_us[kind], of->us);
		}
	}
}

/* Merges small groups of time that no sample saw; their state is kept. */
static void rests_sum_up(struct group_table *table)
{
	const struct group_split *split = table->split;
	union value keys[COLUMN_LIST_MAX] = {{0}};

	for (size_t at = 0, count = table->count; at < count; at++) {
		const union value *group = group_at(table, at);
		int64_t us = group_weight_us(table, group);
		uint32_t together;

		if (group_samples(table, group) || us <= 0 || us >= REST_LEAST_US)
			continue;
		for (size_t i = 0; i < table->key_count; i++)
			if (i == split->state_key)
				keys[i] = group[i];
			else if (table->keys[i]->kind == KIND_TEXT)
				keys[i].text = NULL;
			else
				keys[i].number = ABSENT;
		together = group_table_find(table, keys);
		if (together == GROUP_NONE || together == at)
			continue;
		group_give(table, at, -us);
		group_give(table, together, us);
	}
}

void group_table_share_out(struct group_table *table)
{
	struct group_split *split = table->split;

	if (!split)
		return;
	if (split->errors && table->count > split->variance_count) {
		split->variances = memory_grow(split->variances, &split->variance_capacity,
					       table->count, sizeof(*split->variances));
		for (; split->variance_count < table->count; split->variance_count++)
			split->variances[split->variance_count] = 0;
	}
	shares_give(table);
	if (split->rest != REST_NOWHERE)
		rests_give(table);
	if (split->rest == REST_LARGE_GROUPS && !table->exact && !table->has_parts)
		rests_sum_up(table);
	split->count = split->part_count = 0;
}

bool group_tables_crowded(const struct exact_times *times)
{
	bool crowded = exact_times_full(times);

	for (size_t i = 0; i < times->table_count; i++)
		crowded |= group_table_crowded(times->tables[i]);
	return crowded;
}

void group_tables_share_out(struct exact_times *times)
{
	for (size_t i = 0; i < times->table_count; i++)
		group_table_share_out(times->tables[i]);
	exact_times_clear(times);
}

void group_table_end_interval(struct group_table *table, struct tally *tally)
{
	struct exact_times *times = table->split ? table->split->times : NULL;
	int64_t all_us = 0;

	for (int kind = 0; times && kind < TIME_KINDS; kind++) {
		tally->all_us[kind] = times->all_us[kind];
		tally->covered_us[kind] = times->covered_us[kind];
		all_us = sum(all_us, times->all_us[kind]);
	}
	for (size_t at = 0; all_us && at < table->count; at++)
		tally->shared_us =
			sum(tally->shared_us, group_weight_us(table, group_at(table, at)));
}

int64_t exact_sample_us(const struct exact_times *times, const struct sample *sample)
{
	const struct exact_part *part;
	uint32_t number;

	if (!exact_times_part(times, sample, &number) || !part_shared(times, number))
		return sample->scan.weight_us;
	part = &times->threads[number / TIME_KINDS].parts[number % TIME_KINDS];
	return part->sampled_us ? ratio(part->us, sample->scan.weight_us, part->sampled_us)
				: sample->scan.weight_us;
}

int64_t group_error_us(const struct group_table *table, size_t index)
{
	const struct group_split *split = table->split;

	if (!split || index >= split->variance_count)
		return split && split->errors ? 0 : ABSENT;
	return (int64_t)sqrt(split->variances[index]);
}

void group_split_clear(struct group_table *table)
{
	if (table->split)
		table->split->count = table->split->part_count = table->split->variance_count = 0;
}

void group_split_done(struct group_table *table)
{
	struct exact_times *times = table->split ? table->split->times : NULL;

	if (!table->split)
		return;
	for (size_t i = 0; i < times->table_count; i++)
		if (times->tables[i] == table)
			times->tables[i] = times->tables[--times->table_count];
	free(table->split->shares);
	free(table->split->newest);
	free(table->split->variances);
	free(table->split);
	table->split = NULL;
}
