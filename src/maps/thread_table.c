/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/thread_table.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_START 1024
/* Limit of tries to copy a record that is being written: a switch that keeps its stacks takes up to
 * 10 us. */
#define TORN_TRIES 256

static void chunk_get(struct thread_table *table)
{
	table->keys = memory_get(table->chunk * sizeof(*table->keys));
	table->records = memory_get(table->chunk * sizeof(*table->records));
}

int thread_table_init(struct thread_table *table, const struct thread_maps *maps,
		      uint32_t entries_max)
{
	bool slots = maps->slots >= 0;

	*table = (struct thread_table){
		.store = slots ? &thread_slots : &thread_hash,
		.maps = *maps,
		.entries_max = entries_max,
		.chunk = maps->batch && !slots ? CHUNK_START : 1,
	};
	chunk_get(table);
	return table->store->open(table);
}

void thread_table_view(struct thread_table *view, const struct thread_table *of)
{
	*view = (struct thread_table){
		.store = of->store,
		.maps = of->maps,
		.entries_max = of->entries_max,
		.mapped = of->mapped,
		.mapped_bytes = of->mapped_bytes,
		.chunk = of->maps.batch && !of->mapped ? CHUNK_START : 1,
	};
	chunk_get(view);
}

void thread_table_done(struct thread_table *table)
{
	if (table->mapped)
		munmap(table->mapped, (size_t)table->entries_max * sizeof(*table->mapped));
	thread_table_view_done(table);
}

void thread_table_view_done(struct thread_table *table)
{
	thread_table_forget(table);
	free(table->found);
	free(table->keys);
	free(table->records);
	index_clear(&table->seen);
	*table = (struct thread_table){.maps = {-1, -1, -1, false}};
}

int thread_table_get(struct thread_table *table, uint32_t key, struct thread_state *record)
{
	return table->store->get(table, key, record);
}

static bool is_torn(const struct thread_state *record)
{
	return record->sched.sequence_done != record->sched.sequence_begun;
}

int thread_table_get_whole(struct thread_table *table, uint32_t key, struct thread_state *record)
{
	for (int i = 0; i < TORN_TRIES; i++) {
		int err = thread_table_get(table, key, record);

		if (err || !is_torn(record))
			return err;
	}
	return -EAGAIN;
}

/* Reads sequence_begun last, as slots_get() does. */
static bool is_out(struct thread_table *table, uint32_t key, uint32_t tid, uint64_t sequence,
		   bool *woken)
{
	const struct thread_state *record = thread_table_mapped(table, key);
	struct thread_state copy;
	bool out;

	if (!record) {
		if (thread_table_get(table, key, &copy))
			return false;
		record = &copy;
	}
	out = __atomic_load_n(&record->sched.sequence_done, __ATOMIC_ACQUIRE) == sequence &&
	      __atomic_load_n(&record->sched.tid, __ATOMIC_RELAXED) == tid &&
	      !__atomic_load_n(&record->sched.on_cpu, __ATOMIC_RELAXED);
	*woken = __atomic_load_n(&record->wake.wake_ns, __ATOMIC_RELAXED) >
		 __atomic_load_n(&record->sched.out_ns, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return out && __atomic_load_n(&record->sched.sequence_begun, __ATOMIC_RELAXED) == sequence;
}

bool thread_table_is_out(struct thread_table *table, uint32_t key, uint32_t tid, uint64_t sequence)
{
	bool woken;

	return is_out(table, key, tid, sequence, &woken);
}

bool thread_table_is_asleep(struct thread_table *table, uint32_t key, uint32_t tid,
			    uint64_t sequence)
{
	bool woken;

	return is_out(table, key, tid, sequence, &woken) && !woken;
}

int thread_table_key(struct thread_table *table, uint32_t tid, uint32_t *key)
{
	return table->store->key_of(table, tid, key);
}

int thread_table_add(struct thread_table *table, struct thread_state *record)
{
	return table->store->add(table, record);
}

void thread_table_remove(struct thread_table *table, const struct thread_state *record)
{
	table->store->remove(table, record);
}

void thread_table_put_call(struct thread_table *table, uint32_t key,
			   const struct thread_state *from)
{
	struct thread_state *to = table->mapped ? &table->mapped[key] : NULL;
	__u64 none = 0;

	if (!to || !from->call_ns || __atomic_load_n(&to->call_ns, __ATOMIC_RELAXED))
		return;
	to->call = from->call;
	__atomic_compare_exchange_n(&to->call_ns, &none, from->call_ns, false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

void thread_table_meet(struct thread_table *table, struct thread_state *record)
{
	int err = is_torn(record) ? thread_table_get_whole(table, record->key, record) : 0;

	table->torn_count += err == -EAGAIN;
	if (!err) /* else it kept changing, or the thread ended meanwhile */
		table->visitor.visit(table->visitor.to, record);
}

void thread_table_visit(struct thread_table *table, uint32_t key,
			const struct thread_visitor *visitor)
{
	table->visitor = *visitor;
	if (!thread_table_get(table, key, table->records))
		thread_table_meet(table, table->records);
}

int thread_table_walk(struct thread_table *table, const struct thread_visitor *visitor,
		      uint32_t limit, bool *end)
{
	table->visitor = *visitor;
	return table->store->walk(table, limit, end);
}

int thread_table_scan(struct thread_table *table,
		      void (*visit)(void *to, const struct thread_state *record), void *to)
{
	const struct thread_visitor visitor = {NULL, visit, to};

	return thread_table_scan_some(table, &visitor);
}

int thread_table_scan_some(struct thread_table *table, const struct thread_visitor *visitor)
{
	bool end;

	thread_table_rewind(table);
	return thread_table_walk(table, visitor, UINT32_MAX, &end);
}

void thread_table_forget(struct thread_table *table)
{
	free(table->requested);
	table->requested = NULL;
}

void thread_table_rewind(struct thread_table *table)
{
	table->walked = 0;
	table->fresh = 0;
}
