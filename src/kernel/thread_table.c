/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/thread_table.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#define CHUNK_START 1024
#define TORN_TRIES 4

void thread_table_init(struct thread_table *table, int map, bool batch, uint32_t entries_max)
{
	*table = (struct thread_table){.map = map, .batch = batch, .entries_max = entries_max};
	table->chunk = batch ? CHUNK_START : 1;
	table->keys = memory_get(table->chunk * sizeof(*table->keys));
	table->records = memory_get(table->chunk * sizeof(*table->records));
}

void thread_table_done(struct thread_table *table)
{
	free(table->keys);
	free(table->records);
	index_clear(&table->seen);
	*table = (struct thread_table){.map = -1};
}

int thread_table_get(struct thread_table *table, uint32_t tid, struct thread_state *record)
{
	return bpf_lookup_elem(table->map, &tid, record) ? -errno : 0;
}

int thread_table_add(struct thread_table *table, const struct thread_state *record)
{
	uint32_t tid = record->sched.tid;

	return bpf_update_elem(table->map, &tid, (void *)record, BPF_NOEXIST) ? -errno : 0;
}

void thread_table_remove(struct thread_table *table, uint32_t tid)
{
	bpf_delete_elem(table->map, &tid);
}

/* Hands over a whole record: one that was written while it was copied is read again. */
static void record_visit(struct thread_table *table, struct thread_state *record, uint32_t tid,
			 void (*visit)(void *to, const struct thread_state *record), void *to)
{
	for (int i = 0; record->sched.sequence_done != record->sched.sequence_begun; i++) {
		if (i == TORN_TRIES) {
			table->torn_count++;
			return;
		}
		if (thread_table_get(table, tid, record))
			return; /* the thread ended meanwhile */
	}
	visit(to, record);
}

void thread_table_visit(struct thread_table *table, uint32_t tid,
			void (*visit)(void *to, const struct thread_state *record), void *to)
{
	if (!thread_table_get(table, tid, table->records))
		record_visit(table, table->records, tid, visit, to);
}

static void chunk_double(struct thread_table *table)
{
	table->chunk *= 2;
	table->keys = memory_resize(table->keys, table->chunk, sizeof(*table->keys));
	table->records = memory_resize(table->records, table->chunk, sizeof(*table->records));
}

/* A batch holds whole buckets, under their locks: nothing is missed and nothing comes twice. */
static int scan_batches(struct thread_table *table,
			void (*visit)(void *to, const struct thread_state *record), void *to)
{
	uint32_t position = 0;
	bool first = true;
	int result;

	do {
		uint32_t next = 0, count = table->chunk;

		result = bpf_call_lookup_batch(table->map, first ? NULL : &position, &next,
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
			record_visit(table, &table->records[i], table->keys[i], visit, to);
		position = next;
		first = false;
	} while (result != -ENOENT);
	return 0;
}

/* The next key after one that was just removed is the first key again: what was seen already is
 * passed over, and the walk ends when it has made twice as many steps as the map can hold. */
static int scan_singly(struct thread_table *table,
		       void (*visit)(void *to, const struct thread_state *record), void *to)
{
	uint64_t steps_left = 2ull * table->entries_max + 1024;
	uint32_t tid, *previous = NULL, next;

	index_clear(&table->seen);
	while (bpf_get_next_key(table->map, previous, &next) == 0) {
		bool added;

		if (!steps_left--) {
			table->unfinished_count++;
			return 0;
		}
		tid = next;
		previous = &tid;
		index_put(&table->seen, tid, &added);
		if (added)
			thread_table_visit(table, tid, visit, to);
	}
	return errno == ENOENT ? 0 : -errno;
}

int thread_table_scan(struct thread_table *table,
		      void (*visit)(void *to, const struct thread_state *record), void *to)
{
	return table->batch ? scan_batches(table, visit, to) : scan_singly(table, visit, to);
}
