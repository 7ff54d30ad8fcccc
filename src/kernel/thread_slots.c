/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread state array as an array in memory that is shared with the kernel; a hash tells each
 * thread's slot, and a stack has the free ones. Reading needs no system call.
 */
#include "kernel/thread_table.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <string.h>

#define AHEAD 8 /* records; beyond the last one it is harmless */
/* Slots are first taken from the lowest on, each CPU being at one at most: behind so many that
 * never were, none was. */
#define FRESH_MAX 1024

/* The probes write the sequence's begun, the rest, then its done: to be read the other way round.
 */
static int slots_get(struct thread_table *table, uint32_t key, struct thread_state *record)
{
	const struct thread_state *from;
	uint64_t done;
	uint32_t known;

	if (key >= table->entries_max)
		return -ENOENT;
	from = &table->mapped[key];
	done = __atomic_load_n(&from->sched.sequence_done, __ATOMIC_ACQUIRE);
	known = __atomic_load_n(&from->identity.known, __ATOMIC_ACQUIRE); /* is written last */
	memcpy(record, from, sizeof(*record));
	record->identity.known &= known;
	record->sched.sequence_done = done;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	record->sched.sequence_begun =
		__atomic_load_n(&from->sched.sequence_begun, __ATOMIC_RELAXED);
	record->key = key;
	return record->sched.tid ? 0 : -ENOENT;
}

static int slots_key_of(struct thread_table *table, uint32_t tid, uint32_t *key)
{
	return bpf_lookup_elem(table->maps.slots, &tid, key) ? -errno : 0;
}

static void slot_free(struct thread_table *table, uint32_t slot)
{
	__atomic_store_n(&table->mapped[slot].sched.tid, 0, __ATOMIC_RELEASE);
	bpf_update_elem(table->maps.free, NULL, &slot, BPF_ANY);
}

static int slots_add(struct thread_table *table, struct thread_state *record)
{
	uint32_t slot, tid = record->sched.tid;
	int err = bpf_call_pop(table->maps.free, &slot);

	if (err)
		return err == -ENOENT ? -E2BIG : err;
	record->key = slot;
	/* A shortcut may lead probes there as soon as it has a tid: that comes last. */
	record->sched.tid = 0;
	table->mapped[slot] = *record;
	record->sched.tid = tid;
	__atomic_store_n(&table->mapped[slot].sched.tid, tid, __ATOMIC_RELEASE);
	if (!bpf_update_elem(table->maps.slots, &tid, &slot, BPF_NOEXIST))
		return 0;
	err = -errno;
	slot_free(table, slot);
	return err;
}

/* Who takes the thread's slot out of the hash makes it free: a probe may come first. */
static void slots_remove(struct thread_table *table, const struct thread_state *record)
{
	uint32_t tid = record->sched.tid, slot;

	if (!slots_key_of(table, tid, &slot) && slot < table->entries_max &&
	    !bpf_delete_elem(table->maps.slots, &tid))
		slot_free(table, slot);
}

static int slots_walk(struct thread_table *table, uint32_t limit, bool *end)
{
	uint32_t left = table->entries_max - table->walked, slot = table->walked, until;

	until = slot + (limit < left ? limit : left);
	for (; slot < until && table->fresh < FRESH_MAX; slot++) {
		const struct thread_state *record = &table->mapped[slot];

		table->fresh = record->sched.tid || record->sched.out_ns ? 0 : table->fresh + 1;
		/* what a walk looks at, of a record some steps on */
		__builtin_prefetch(&record[AHEAD].wake);
		__builtin_prefetch(&record[AHEAD].sched.tid);
		if (record->sched.tid && !thread_table_passes(table, record, slot) &&
		    !slots_get(table, slot, table->records))
			thread_table_meet(table, table->records);
	}
	*end = slot == table->entries_max || table->fresh == FRESH_MAX;
	table->walked = *end ? 0 : slot;
	table->fresh = *end ? 0 : table->fresh;
	return 0;
}

int thread_table_clear(struct thread_table *table)
{
	/* the lowest first */
	for (uint32_t slot = table->entries_max; table->mapped && slot-- > 0;)
		if (bpf_update_elem(table->maps.free, NULL, &slot, BPF_ANY))
			return -errno;
	return 0;
}

const struct thread_store thread_slots = {slots_get, slots_key_of, slots_add, slots_remove,
					  slots_walk};
