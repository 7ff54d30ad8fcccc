/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the thread state array: from memory where it is mapped, in batches where the kernel has
 * them, one by one elsewhere; each thread at most once a scan, never a torn record. A record is
 * identified by its key, thread_state.key.
 *
 * From 5.5 the array is memory shared with the kernel and read without a system call. A hash has
 * each thread's slot, ts_near is the probes' shortcut to it, a stack has the free slots. Before 5.5
 * the array is a hash by tid. A key is a slot, or a tid in the hash. Task-local storage (5.11)
 * would cost a switch more than the shortcut does, and need a task iterator to be read.
 *
 * Where no program writes records, the array is in this process's own memory, and one thread writes
 * them from /proc (live/threads/proc_records.h).
 */
#ifndef TSNAP_MAPS_THREAD_TABLE_H
#define TSNAP_MAPS_THREAD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "kernel/record.h"

/* Descriptors of the array's maps, not owned. */
struct thread_maps {
	int threads;
	int slots, free; /* -1: the array is a hash by tid */
	bool batch;	 /* the kernel reads a hash in batches */
};

struct thread_table;

/* What an array in own memory has beside its records. */
struct own_slots;

/* Requested registers of the thread in a slot, and the episode off its CPU that they belong to: a
 * sampler that shows all threads requests those of sleepers at every scan. */
struct requested_registers {
	uint64_t episode; /* result of episode_of() in thread_table.c; 0: none */
	__u64 registers[THREAD_REGISTER_COUNT];
};

/* Callbacks of a walk. */
struct thread_visitor {
	/* True if the record with that key is of no interest; NULL: every record is visited. It may
	 * be torn, and change while it is looked at. Its first two cache lines are loaded
	 * already. */
	bool (*passes)(void *to, const struct thread_state *record, uint32_t key);
	/* The record is visit's until it returns. */
	void (*visit)(void *to, const struct thread_state *record);
	void *to;
};

struct thread_table {
	const struct thread_store *store;
	struct thread_maps maps;
	struct own_slots *own; /* NULL: the kernel's programs write the records */
	uint32_t entries_max;
	struct thread_visitor visitor;
	struct thread_state *mapped; /* address space for the whole array; NULL: it is a hash */
	size_t mapped_bytes;	     /* bytes of the array that are mapped */
	uint32_t walked;	     /* slots of this round that walks have seen */
	uint32_t fresh;		     /* slots in a row, up to walked, that were never used */
	uint32_t chunk;		     /* records read by one batch call */
	uint32_t *keys;
	struct thread_state *records;
	/* registers by slot, entries_max of them; NULL: none, or no slots */
	struct requested_registers *requested;
	uint32_t *found;	   /* slots that were looked up, by tid; NULL: none yet */
	struct index seen;	   /* tids of this walk, read one by one: it may restart */
	uint64_t torn_count;	   /* records left out of a scan because they kept changing */
	uint64_t unfinished_count; /* walks that could not see the whole map */
};

/* The store of an array that is mapped. */
extern const struct thread_store thread_slots;

/* Opens a table; maps are copied. 0, or -errno: the array can't be mapped; the caller calls
 * thread_table_done() either way. */
int thread_table_init(struct thread_table *table, const struct thread_maps *maps,
		      uint32_t entries_max);
/* Opens a table in own memory, of which only used slots take some. lasts: true if a thread has not
 * come on a CPU since the record was written; any thread calls it. 0 or -errno, as above. */
int thread_table_init_own(struct thread_table *table, uint32_t entries_max,
			  bool (*lasts)(const struct thread_state *record));
void thread_table_done(struct thread_table *table);

/* Begins and ends a change of a record in own memory, by the thread that writes them: others may
 * read it meanwhile. sequence: its new number. */
struct thread_state *thread_table_write_begin(struct thread_table *table, uint32_t key,
					      uint64_t sequence);
void thread_table_write_end(struct thread_state *record);
/* Returns how many threads did not fit into own memory; 0 where programs write. */
uint64_t thread_table_unfit(const struct thread_table *table);
/* True if the thread has not come on a CPU since the record was written. Always true where programs
 * write, as the record shows that itself. */
bool thread_table_lasts(const struct thread_table *table, const struct thread_state *record);

/* Makes another reader of the same array, for another thread; it must be done with before `of` is.
 * Each counts what it has missed. */
void thread_table_view(struct thread_table *view, const struct thread_table *of);
void thread_table_view_done(struct thread_table *view);

/* Forgets requested registers: records are as the probes have written them, until more is
 * requested. */
void thread_table_forget(struct thread_table *table);

/* Makes all slots free ones; once, before the probes are attached. 0 or -errno. */
int thread_table_clear(struct thread_table *table);

/* Meets the records from where the last walk ended, at least `limit` of them if there are so many;
 * *end: all have been met since the last end, and the next walk begins anew. 0, or -errno of the
 * kernel. */
int thread_table_walk(struct thread_table *table, const struct thread_visitor *visitor,
		      uint32_t limit, bool *end);
void thread_table_rewind(struct thread_table *table); /* the next walk begins anew */
/* Begins a new walk, and visits all records. */
int thread_table_scan(struct thread_table *table,
		      void (*visit)(void *to, const struct thread_state *record), void *to);
/* Begins a new walk, and visits all records that it does not pass. */
int thread_table_scan_some(struct thread_table *table, const struct thread_visitor *visitor);

/* Visits one record without a call of passes(); does nothing where there is none. */
void thread_table_visit(struct thread_table *table, uint32_t key,
			const struct thread_visitor *visitor);

/* Returns the record in place: it may be free, torn, and change while it is looked at. NULL: there
 * is none, or it is not mapped (records of the newest slots are mapped when they are read). */
static inline const struct thread_state *thread_table_mapped(const struct thread_table *table,
							     uint32_t key)
{
	return (key + (size_t)1) * sizeof(*table->mapped) <= table->mapped_bytes
		       ? &table->mapped[key]
		       : NULL;
}

/* Copies one record, perhaps torn. 0 or -ENOENT. */
int thread_table_get(struct thread_table *table, uint32_t key, struct thread_state *record);
/* Copies one record, whole. 0, -ENOENT, or -EAGAIN: it kept changing. */
int thread_table_get_whole(struct thread_table *table, uint32_t key, struct thread_state *record);
/* True if the thread has not run since its switch out with that sequence number. Where the array is
 * mapped nothing is copied. */
bool thread_table_is_out(struct thread_table *table, uint32_t key, uint32_t tid, uint64_t sequence);
/* True if the thread has neither run nor been woken since its switch out with that sequence
 * number. */
bool thread_table_is_asleep(struct thread_table *table, uint32_t key, uint32_t tid,
			    uint64_t sequence);
/* Finds the key of the thread's record. 0 or -ENOENT. */
int thread_table_key(struct thread_table *table, uint32_t tid, uint32_t *key);
/* Adds a record unless the thread has one, and fills its key. 0, -EEXIST, or -E2BIG: the map is
 * full. */
int thread_table_add(struct thread_table *table, struct thread_state *record);
void thread_table_remove(struct thread_table *table, const struct thread_state *record);
/* Copies the system call of from, another record of the thread, into the record with that key,
 * unless the thread has begun one since. Only where the array is mapped. */
void thread_table_put_call(struct thread_table *table, uint32_t key,
			   const struct thread_state *from);

/* Number of the thread's last switch out. */
static inline uint64_t record_out_sequence(const struct thread_state *record)
{
	return record->sched.sequence_done - record->sched.on_cpu;
}

/* Fills requested registers into the record, and keeps them for as long as the thread sleeps, if
 * table->requested is there. */
void thread_table_put_registers(struct thread_table *table, struct thread_state *record,
				const __u64 *registers);

#endif
