/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread state array as a hash by tid, read through bpf(2). */
#include "maps/thread_table.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>

static int hash_open(struct thread_table *table)
{
	(void)table;
	return 0;
}

static int hash_get(struct thread_table *table, uint32_t key, struct thread_state *record)
{
	return bpf_lookup_elem(table->maps.threads, &key, record) ? -errno : 0;
}

static int hash_key_of(struct thread_table *table, uint32_t tid, uint32_t *key)
{
	(void)table;
	*key = tid;
	return 0;
}

static int hash_add(struct thread_table *table, struct thread_state *record)
{
	record->key = record->sched.tid;
	return bpf_update_elem(table->maps.threads, &record->key, record, BPF_NOEXIST) ? -errno : 0;
}

static void hash_remove(struct thread_table *table, const struct thread_state *record)
{
	uint32_t key = record->key;

	bpf_delete_elem(table->maps.threads, &key);
}

static void hash_meet(struct thread_table *table, struct thread_state *record)
{
	if (!thread_table_passes(table, record, record->key))
		thread_table_meet(table, record);
}

static void chunk_double(struct thread_table *table)
{
	table->chunk *= 2;
	table->keys = memory_resize(table->keys, table->chunk, sizeof(*table->keys));
	table->records = memory_resize(table->records, table->chunk, sizeof(*table->records));
}

/* A batch holds whole buckets, under their locks: nothing is missed and nothing comes twice. */
static int walk_batches(struct thread_table *table)
{
	uint32_t position = 0;
	bool first = true;
	int result;

	do {
		uint32_t next = 0, count = table->chunk;

		result = bpf_call_lookup_batch(table->maps.threads, first ? NULL : &position, &next,
					       table->keys, table->records, &count);
		if (result == -ENOSPC && table->chunk < table->entries_max) {
			chunk_double(table); /* a bucket longer than the chunk */
			result = 0;
			continue;
		}
		if (result == -EINTR)
			continue;
		if (result && result != -ENOENT)
			return result;
		for (uint32_t i = 0; i < count; i++)
			hash_meet(table, &table->records[i]);
		position = next;
		first = false;
	} while (result != -ENOENT);
	return 0;
}

/* The next key after one that was just removed is the first key again: what was seen already is
 * passed over, and the walk ends when it has made twice as many steps as the map can hold. */
static int walk_singly(struct thread_table *table)
{
	uint64_t steps_left = 2ull * table->entries_max + 1024;
	uint32_t tid, *previous = NULL, next;

	index_clear(&table->seen);
	while (bpf_get_next_key(table->maps.threads, previous, &next) == 0) {
		bool added;

		if (!steps_left--) {
			table->unfinished_count++;
			return 0;
		}
		tid = next;
		previous = &tid;
		index_put(&table->seen, tid, &added);
		if (added && !hash_get(table, tid, table->records))
			hash_meet(table, table->records);
	}
	return errno == ENOENT ? 0 : -errno;
}

/* Walks the whole hash, whatever the limit: a part of a hash has no bounds. */
static int hash_walk(struct thread_table *table, uint32_t limit, bool *end)
{
	(void)limit;
	*end = true;
	return table->maps.batch ? walk_batches(table) : walk_singly(table);
}

const struct thread_store thread_hash = {hash_open, hash_get,	 hash_key_of,
					 hash_add,  hash_remove, hash_walk};
