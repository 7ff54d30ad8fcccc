/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread state array as an array in memory that is shared with the kernel; a hash has each
 * thread's slot, and a stack has the free slots. Reading needs no system call.
 */
#include "maps/thread_table.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "maps/register_requester.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AHEAD 8 /* records to prefetch ahead; harmless beyond the last one */
/* Slots are first taken from the lowest on, by each CPU one at a time: after this many slots in a
 * row that were never used, no slot was. */
#define FRESH_MAX 1024
/* Cached slots by tid, one for all tids with the same remainder. */
#define FOUND_MAX 8192
/* Age in switches below which registers are copied with their record. */
#define REGISTERS_KEPT 16

/* Step in which the array is mapped, whole pages of any size. Mapped bytes count as memory of the
 * process: it maps only what was ever used. */
#define MAP_STEP_BYTES ((size_t)512 << 10)

static size_t array_bytes(const struct thread_table *table)
{
	return (size_t)table->entries_max * sizeof(*table->mapped);
}

/* Maps the array up to that slot. 0 or -errno. */
static int slots_map(struct thread_table *table, uint32_t slot)
{
	size_t from = table->mapped_bytes, until = (slot + (size_t)1) * sizeof(*table->mapped);
	int err;

	if (until <= from)
		return 0;
	until = (until + MAP_STEP_BYTES - 1) / MAP_STEP_BYTES * MAP_STEP_BYTES;
	if (until > array_bytes(table))
		until = array_bytes(table);
	err = bpf_call_map_mapped_at(table->maps.threads, from, until - from, table->mapped);
	if (!err)
		table->mapped_bytes = until;
	return err;
}

static int slots_open(struct thread_table *table)
{
	void *mapping = mmap(NULL, array_bytes(table), PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapping == MAP_FAILED)
		return -errno;
	table->mapped = mapping;
	return slots_map(table, 0);
}

/* The probes write sequence_begun, the rest, then sequence_done: the order of reading is the
 * reverse. */
static int slots_get(struct thread_table *table, uint32_t key, struct thread_state *record)
{
	const struct thread_state *from;
	uint64_t done, age;
	uint32_t known;

	if (key >= table->entries_max || slots_map(table, key))
		return -ENOENT;
	from = &table->mapped[key];
	done = __atomic_load_n(&from->sched.sequence_done, __ATOMIC_ACQUIRE);
	known = __atomic_load_n(&from->identity.known, __ATOMIC_ACQUIRE); /* is written last */
	memcpy(record, from, offsetof(struct thread_state, sched.registers));
	age = done - record->sched.registers_sequence;
	if (age < REGISTERS_KEPT)
		memcpy(record->sched.registers, from->sched.registers,
		       sizeof(record->sched.registers));
	else /* saves two cache lines that nobody needs */
		record->sched.registers_sequence = 0;
	memcpy(&record->identity, &from->identity,
	       sizeof(*record) - offsetof(struct thread_state, identity));
	record->identity.known &= known;
	record->sched.sequence_done = done;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	record->sched.sequence_begun =
		__atomic_load_n(&from->sched.sequence_begun, __ATOMIC_RELAXED);
	record->key = key;
	if (table->requested)
		registers_recall(&table->requested[key], record);
	return record->sched.tid ? 0 : -ENOENT;
}

static int slot_find(const struct thread_table *table, uint32_t tid, uint32_t *slot)
{
	return bpf_lookup_elem(table->maps.slots, &tid, slot) ? -errno : 0;
}

/* A slot that was found before is the thread's as long as its record says so: no system call. */
static int slots_key_of(struct thread_table *table, uint32_t tid, uint32_t *key)
{
	uint32_t *found;
	const struct thread_state *record;
	int err;

	if (!table->found)
		table->found = memory_get(FOUND_MAX * sizeof(*table->found));
	found = &table->found[tid % FOUND_MAX];
	record = thread_table_mapped(table, *found);
	if (record && __atomic_load_n(&record->sched.tid, __ATOMIC_ACQUIRE) == tid) {
		*key = *found;
		return 0;
	}
	err = slot_find(table, tid, key);
	if (!err)
		*found = *key;
	return err;
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
	err = slots_map(table, slot);
	if (err) {
		bpf_update_elem(table->maps.free, NULL, &slot, BPF_ANY);
		return err;
	}
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

/* Frees the thread's slot, if this deletes it from the hash: a probe may come first. */
static void slots_remove(struct thread_table *table, const struct thread_state *record)
{
	uint32_t tid = record->sched.tid, slot;

	if (!slot_find(table, tid, &slot) && slot < table->entries_max && !slots_map(table, slot) &&
	    !bpf_delete_elem(table->maps.slots, &tid))
		slot_free(table, slot);
}

static int slots_walk(struct thread_table *table, uint32_t limit, bool *end)
{
	uint32_t left = table->entries_max - table->walked, slot = table->walked, until;
	bool met = false;
	int err;

	until = slot + (limit < left ? limit : left);
	for (; slot < until && table->fresh < FRESH_MAX; slot++) {
		const struct thread_state *record = &table->mapped[slot];

		err = slots_map(table, slot);
		if (err)
			return err;
		table->fresh = record->sched.tid || record->sched.out_ns ? 0 : table->fresh + 1;
		/* cache lines that a walk looks at, of a record some steps ahead */
		__builtin_prefetch(&record[AHEAD].wake);
		__builtin_prefetch(&record[AHEAD].sched.tid);
		if (met) { /* cache lines to copy, as that record is most likely met, too */
			__builtin_prefetch(&record[AHEAD].sched.sequence_begun);
			__builtin_prefetch(&record[AHEAD].identity.comm);
		}
		if (!record->sched.tid)
			continue;
		met = !thread_table_passes(table, record, slot);
		if (met && !slots_get(table, slot, table->records))
			thread_table_meet(table, table->records);
	}
	*end = slot == table->entries_max || table->fresh == FRESH_MAX;
	table->walked = *end ? 0 : slot;
	table->fresh = *end ? 0 : table->fresh;
	return 0;
}

/* Loads a program that makes the slot below counter a free one, and counts down to it. */
static int filler_load(int counter, int stack)
{
	const int count = BPF_REG_6, slot = BPF_REG_7;
	const struct bpf_insn insns[] = {
		BPF_STORE_IMM_(BPF_REG_10, -8, 0),
		BPF_MAP_(BPF_REG_1, counter),
		BPF_STACK_(BPF_REG_2, -8),
		BPF_CALL_(BPF_FUNC_map_lookup_elem),
		BPF_OP_(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 12, 0),
		BPF_COPY_(count, BPF_REG_0),
		BPF_LOAD_(slot, count, 0),
		BPF_ADD_(slot, -1),
		BPF_OP_(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, slot, -8, 0),
		BPF_MAP_(BPF_REG_1, stack),
		BPF_STACK_(BPF_REG_2, -8),
		BPF_SET_(BPF_REG_3, 0),
		BPF_CALL_(BPF_FUNC_map_push_elem),
		BPF_OP_(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 1, 0),
		BPF_STORE_(count, 0, slot),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load(BPF_PROG_TYPE_SOCKET_FILTER, insns, sizeof(insns) / sizeof(insns[0]));
}

/* Makes the *left lowest slots free ones, the lowest last; *left becomes the number of slots that
 * are still to be made free: all, where the program can't be run. 0, or -errno when that is not
 * known. */
static int slots_fill(const struct thread_table *table, uint64_t *left)
{
	int counter = bpf_call_map(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(*left), 1);
	int program = counter < 0 ? -1 : filler_load(counter, table->maps.free), result = 0;
	uint32_t zero = 0;

	if (program >= 0 && !bpf_update_elem(counter, &zero, left, BPF_ANY)) {
		bpf_call_run_often(program, (uint32_t)*left);
		result = bpf_lookup_elem(counter, &zero, left) ? -errno : 0;
	}
	if (program >= 0)
		close(program);
	if (counter >= 0)
		close(counter);
	return result;
}

int thread_table_clear(struct thread_table *table)
{
	uint64_t left = table->mapped ? table->entries_max : 0;
	/* one system call for all of them; one for each takes 10 ms for 16384 */
	int result = left ? slots_fill(table, &left) : 0;

	while (!result && left) {
		uint32_t slot = (uint32_t)--left;

		if (bpf_update_elem(table->maps.free, NULL, &slot, BPF_ANY))
			result = -errno;
	}
	return result;
}

const struct thread_store thread_slots = {slots_open, slots_get,    slots_key_of,
					  slots_add,  slots_remove, slots_walk};
