/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/thread_table.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_START 1024
/* Limit of tries to copy a record that is being written: a switch that keeps its stacks takes up to
 * 10 us. */
#define TORN_TRIES 256

/* A way to keep records. Each returns 0 or -errno. */
struct thread_store {
	int (*open)(struct thread_table *table);
	int (*get)(struct thread_table *table, uint32_t key, struct thread_state *record);
	int (*key_of)(struct thread_table *table, uint32_t tid, uint32_t *key);
	int (*add)(struct thread_table *table, struct thread_state *record);
	void (*remove)(struct thread_table *table, const struct thread_state *record);
	int (*walk)(struct thread_table *table, uint32_t limit, bool *end);
};

static bool is_torn(const struct thread_state *record)
{
	return record->sched.sequence_done != record->sched.sequence_begun;
}

/* Returns one number for a thread and its switch out: a thread that begins after another has ended
 * does so by more ns than that one was switched. */
static uint64_t episode_of(const struct thread_state *record)
{
	return record->identity.start_boot_ns + record_out_sequence(record);
}

/* Fills in the registers of the last switch out. */
static void registers_put(struct thread_state *record, const __u64 *registers)
{
	memcpy(record->sched.registers, registers, sizeof(record->sched.registers));
	record->sched.registers_sequence = record_out_sequence(record);
	record->sched.known |= SCHED_SWITCHED_OUT; /* perhaps before anybody looked */
}

/* Fills in registers that were requested before, if the thread has not run since. */
static void registers_recall(const struct requested_registers *requested,
			     struct thread_state *record)
{
	if (requested->episode && requested->episode == episode_of(record) && !record->sched.on_cpu)
		registers_put(record, requested->registers);
}

static bool passes(const struct thread_table *table, const struct thread_state *record,
		   uint32_t key)
{
	return table->visitor.passes && table->visitor.passes(table->visitor.to, record, key);
}

/* Hands a whole record to the visitor, and reads again what was written during the copy. */
static void meet(struct thread_table *table, struct thread_state *record)
{
	int err = is_torn(record) ? thread_table_get_whole(table, record->key, record) : 0;

	table->torn_count += err == -EAGAIN;
	if (!err) /* else it kept changing, or the thread ended meanwhile */
		table->visitor.visit(table->visitor.to, record);
}

/* --- the array as a hash by tid, read through bpf(2) */

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
	if (!passes(table, record, record->key))
		meet(table, record);
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

static const struct thread_store thread_hash = {hash_open, hash_get,	hash_key_of,
						hash_add,  hash_remove, hash_walk};

/* --- the array in memory that is shared with the kernel; a hash has each thread's slot, and a
 * stack has the free slots. Reading needs no system call. */

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

static int bytes_map(const struct thread_table *table, size_t from, size_t bytes)
{
	char *at = (char *)table->mapped + from;

	if (!table->own)
		return bpf_call_map_mapped_at(table->maps.threads, from, bytes, table->mapped);
	return mprotect(at, bytes, PROT_READ | PROT_WRITE) ? -errno : 0;
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
	err = bytes_map(table, from, until - from);
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
		met = !passes(table, record, slot);
		if (met && !slots_get(table, slot, table->records))
			meet(table, table->records);
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

const struct thread_store thread_slots = {slots_open, slots_get,    slots_key_of,
					  slots_add,  slots_remove, slots_walk};

/* --- the array in own memory: slots as above, but this process finds and frees them */

struct own_slots {
	pthread_mutex_t lock; /* guards all below */
	struct index by_tid;  /* tid to slot */
	uint32_t *free;
	size_t free_count, free_capacity;
	uint32_t used; /* slots that were ever used */
	uint64_t unfit_count;
	bool (*lasts)(const struct thread_state *record);
};

static int own_key_of(struct thread_table *table, uint32_t tid, uint32_t *key)
{
	struct own_slots *own = table->own;
	const uint64_t *slot;

	pthread_mutex_lock(&own->lock);
	slot = index_find(&own->by_tid, tid);
	if (slot)
		*key = (uint32_t)*slot;
	pthread_mutex_unlock(&own->lock);
	return slot ? 0 : -ENOENT;
}

static int own_slot_take(struct thread_table *table, uint32_t *slot)
{
	struct own_slots *own = table->own;

	if (own->free_count) {
		*slot = own->free[--own->free_count];
		return 0;
	}
	if (own->used == table->entries_max || slots_map(table, own->used)) {
		own->unfit_count++;
		return -E2BIG;
	}
	*slot = own->used++;
	return 0;
}

static int own_add(struct thread_table *table, struct thread_state *record)
{
	struct own_slots *own = table->own;
	uint32_t tid = record->sched.tid;
	int err;

	pthread_mutex_lock(&own->lock);
	err = index_find(&own->by_tid, tid) ? -EEXIST : own_slot_take(table, &record->key);
	if (!err) {
		*index_put(&own->by_tid, tid, NULL) = record->key;
		record->sched.tid = 0;
		table->mapped[record->key] = *record;
		record->sched.tid = tid;
		__atomic_store_n(&table->mapped[record->key].sched.tid, tid, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&own->lock);
	return err;
}

static void own_remove(struct thread_table *table, const struct thread_state *record)
{
	struct own_slots *own = table->own;
	const uint64_t *slot;
	uint32_t freed;

	pthread_mutex_lock(&own->lock);
	slot = index_find(&own->by_tid, record->sched.tid);
	if (slot) {
		freed = (uint32_t)*slot;
		index_remove(&own->by_tid, record->sched.tid);
		__atomic_store_n(&table->mapped[freed].sched.tid, 0, __ATOMIC_RELEASE);
		own->free = memory_grow(own->free, &own->free_capacity, own->free_count + 1,
					sizeof(*own->free));
		own->free[own->free_count++] = freed;
	}
	pthread_mutex_unlock(&own->lock);
}

static const struct thread_store thread_own = {slots_open, slots_get,  own_key_of,
					       own_add,	   own_remove, slots_walk};

struct thread_state *thread_table_write_begin(struct thread_table *table, uint32_t key,
					      uint64_t sequence)
{
	struct thread_state *record = &table->mapped[key];

	__atomic_store_n(&record->sched.sequence_begun, sequence, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return record;
}

void thread_table_write_end(struct thread_state *record)
{
	__atomic_store_n(&record->sched.sequence_done, record->sched.sequence_begun,
			 __ATOMIC_RELEASE);
}

uint64_t thread_table_unfit(const struct thread_table *table)
{
	uint64_t count;

	if (!table->own)
		return 0;
	pthread_mutex_lock(&table->own->lock);
	count = table->own->unfit_count;
	pthread_mutex_unlock(&table->own->lock);
	return count;
}

bool thread_table_lasts(const struct thread_table *table, const struct thread_state *record)
{
	return !table->own || table->own->lasts(record);
}

/* --- all of them */

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

int thread_table_init_own(struct thread_table *table, uint32_t entries_max,
			  bool (*lasts)(const struct thread_state *record))
{
	*table = (struct thread_table){
		.store = &thread_own,
		.maps = {-1, -1, -1, false},
		.own = memory_get(sizeof(*table->own)),
		.entries_max = entries_max,
		.chunk = 1,
	};
	pthread_mutex_init(&table->own->lock, NULL);
	table->own->lasts = lasts;
	chunk_get(table);
	return slots_open(table);
}

void thread_table_view(struct thread_table *view, const struct thread_table *of)
{
	*view = (struct thread_table){
		.store = of->store,
		.maps = of->maps,
		.own = of->own,
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
	if (table->own) {
		index_clear(&table->own->by_tid);
		free(table->own->free);
		pthread_mutex_destroy(&table->own->lock);
		free(table->own);
	}
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
	return out &&
	       __atomic_load_n(&record->sched.sequence_begun, __ATOMIC_RELAXED) == sequence &&
	       thread_table_lasts(table, record);
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

void thread_table_visit(struct thread_table *table, uint32_t key,
			const struct thread_visitor *visitor)
{
	table->visitor = *visitor;
	if (!thread_table_get(table, key, table->records))
		meet(table, table->records);
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

void thread_table_put_registers(struct thread_table *table, struct thread_state *record,
				const __u64 *registers)
{
	registers_put(record, registers);
	if (!table->requested)
		return;
	table->requested[record->key].episode = episode_of(record);
	memcpy(table->requested[record->key].registers, registers, sizeof(record->sched.registers));
}
