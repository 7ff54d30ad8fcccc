/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Seeds: records of threads that are there already at the start, as a thread that never switches is
 * in no map. They are made from /proc and put into the thread state array. What a thread sleeps in
 * is read from /proc when it is sampled before its first switch.
 *
 * Where ids are translated, /proc does not have the key that the array has for a thread. The seeds
 * of such threads wait here instead, with the key 0, until the kernel has made their record.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_SEED_H
#define TSNAP_LIVE_THREADS_LIVE_SEED_H

#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "maps/kernel.h"
#include "sample/sample.h"

struct lookup_hint;
struct proc_stat;

struct live_seed {
	uint64_t unfit_count; /* threads that did not fit the map */
	struct keyed
		waiting;    /* struct thread_state, by tid: seeds that wait; tid 0: not any more */
	struct keyed calls; /* struct seed_call, by tid */
};

/* Returns the waiting thread with that tid, or NULL. live_seed_visit() visits all that wait, and
 * visit may remove the one that it is given. */
const struct thread_state *live_seed_waiting(struct live_seed *seed, uint32_t tid);
void live_seed_visit(struct live_seed *seed,
		     void (*visit)(void *to, const struct thread_state *record), void *to);
void live_seed_remove(struct live_seed *seed, uint32_t tid);

/* Walks /proc. 0 or -errno with e. */
int live_seed_all(struct live_seed *seed, struct kernel *kernel, struct error *e);

/* Fills a record's identity from /proc/TID/stat, and of its sched what is known from there: state,
 * exit_state, cpu, known. */
void live_seed_identity(struct thread_identity *identity, int64_t pid,
			const struct proc_stat *stat);
void live_seed_state(struct thread_sched *sched, const struct proc_stat *stat);

/* True if the process runs a 32-bit program, by its ELF class: /proc does not show how a call was
 * made. */
bool live_seed_is_32_bit(int64_t pid);

/* Fills syscall_nr and arg of a thread that has not been switched since its record was made from
 * /proc; of *hint, whose sequence is the record's, compat (its program is a 32-bit one) and
 * no_call. */
void live_seed_call(struct live_seed *seed, struct sample *sample, struct lookup_hint *hint);

/* Copies the record to *whole, with its identity from /proc, and returns that. NULL: the thread is
 * gone. */
const struct thread_state *live_seed_fill(const struct thread_state *record,
					  struct thread_state *whole);

/* Returns the record, or live_seed_fill() of one that no probe has seen whole. */
static inline const struct thread_state *live_seed_whole(const struct thread_state *record,
							 struct thread_state *whole)
{
	return record->identity.known & IDENTITY_NAME ? record : live_seed_fill(record, whole);
}

void live_seed_done(struct live_seed *seed);

#endif
