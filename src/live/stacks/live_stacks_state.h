/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of the stacks of a live source, and what becomes of stacks that were found: words in
 * samples, entries of a dictionary, stacks of the wakers of others.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_STACKS_STATE_H
#define TSNAP_LIVE_STACKS_LIVE_STACKS_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/index.h"
#include "kernel/registers.h"
#include "live/context/live_context.h"
#include "maps/cpu_sampler.h"
#include "maps/kept_stacks.h"
#include "maps/register_requester.h"
#include "sample/source.h"
#include "unwind/runtime/python_frames.h"
#include "unwind/stack_table.h"
#include "unwind/thread_memory.h"
#include "unwind/unwinder.h"

#define SAMPLE_NONE SIZE_MAX

/* A thread of this scan whose stacks are to be read, and its sample. */
struct stack_wait {
	struct thread_state record;
	size_t sample; /* index, or SAMPLE_NONE */
	int64_t start_ns;
	bool kthread;
	bool displaced; /* runs again as soon as tsnap leaves its CPU */
	bool registers_known;
	struct user_registers registers; /* registers that a walk begins with */
};

/* A sample of this scan whose stacks are to be put into words. */
struct pending_stack {
	size_t sample;
	uint32_t user, kernel;
};

/* A stack that a dictionary is to get, and the user of the thread that had it first. */
struct listed_stack {
	int64_t uid; /* or ABSENT */
	uint32_t number;
};

/* Stacks of threads on their CPUs: live_cpu_stacks.h. */
struct live_cpu_stacks {
	struct cpu_sampler sampler;
	int err; /* reason why there are none, or 0 */
	bool wanted;
	int names_err;	     /* reason why functions of the kernel have no names, or 0 */
	uint64_t gone_count; /* samples without a stack: the thread had left its CPU by then */
	uint64_t functions_refused; /* kernel functions beyond those that are kept */
};

/* Stacks that switches kept: live_kept.h. */
struct live_kept {
	struct kept_stacks stacks;
	int err; /* reason why switches keep none, or 0 */
};

/* Stacks copied right after the scan time. A zeroed struct is empty. Only the thread that scans
 * uses it. */
struct live_copies {
	bool user, kernel; /* stacks that are copied */
	const char *proc_root;
	struct register_requester *requester;
	struct thread_memory memory;
	struct index known, again; /* tid to sequence of copies: the last scan's, and this one's */
};

struct live_stacks {
	/* set by the caller */
	struct live_context *context;
	struct source *source;	/* source whose stack_take gets the dictionary */
	struct sample *samples; /* samples of the batch that is gathered */
	uint64_t needs;		/* wanted needs of NEEDS_STACKS; 0: nothing is done */

	struct live_cpu_stacks cpu;
	struct live_kept kept;
	struct live_copies copies;
	const char *proc_root;
	struct module_table modules;
	struct unwinder unwinder;
	bool python_wanted;
	struct python_frames python;
	struct stack_names *names;
	struct stack_table table;
	struct cache threads;
	struct stack_wait waiting[REQUESTS_MAX];
	uint32_t waiting_count;
	struct pending_stack *pending;
	size_t pending_count, pending_capacity;
	struct cache wakers; /* last stacks of wakers */
	struct index waker_words;
	uint32_t *wanted; /* wakers of this scan, by tid */
	size_t wanted_count, wanted_capacity;
	struct listed_stack *listed; /* stacks that a dictionary is to get */
	size_t listed_count, listed_capacity;
	uint64_t unnamed_count; /* stacks in the dictionary without all names */
	int64_t kept_ns;	/* time when files that no process maps were looked for */
	int64_t until_ns;	/* time after which stacks are not read (monotonic); 0: none */
	uint64_t late_count;	/* stacks not read because of until_ns */
	uint64_t moved_count;	/* stacks thrown away: the thread ran meanwhile */
	uint64_t refused_count; /* user stacks that the kernel refuses to show */
	uint64_t unread_count;	/* user stacks that could not be read for other reasons */
	uint64_t unknown_count; /* stacks whose registers are not known */
	uint64_t kernel_refused_count, kernel_unread_count;
	uint64_t ended_count; /* stacks of threads that were ending: there was nothing to read */
	uint64_t clear_count;
	uint64_t late_files; /* times that a file was not read yet, for want of memory or time */
};

/* True if the kernel keeps these registers of system calls; where that could not be found out, by
 * its release. */
static inline bool live_registers_keep(const struct live_stacks *stacks, enum registers_kept kept)
{
	const struct kernel *kernel = &stacks->context->kernel;

	return kernel->compiled.stack_registers
		       ? kernel->compiled.registers_kept & kept
		       : kernel->host.kernel_code >= 4 << 16 && kept != REGISTERS_PRESERVED;
}

/* Returns the column's value: a 64-bit number, or ABSENT. */
static inline int64_t live_stack_hash(const struct live_stacks *stacks, uint32_t stack)
{
	int64_t hash = stack == STACK_NONE ? ABSENT : (int64_t)stacks->table.stacks[stack].hash;

	return hash == ABSENT && stack != STACK_NONE ? hash + 1 : hash;
}

/* Sets the stacks of the sample with that index: numbers of the table, or STACK_NONE. */
void live_stacks_set(struct live_stacks *stacks, size_t sample, uint32_t user, uint32_t kernel);
/* Counts a thread's stacks that could not be read (-errno, or 0), unless it was ending. */
void live_stacks_unread(struct live_stacks *stacks, const struct thread_identity *identity,
			int user_err, int kernel_err);
/* Returns the thread of that record, at the scan time, for a walk over its stack. */
struct stack_thread live_stack_thread(const struct live_stacks *stacks,
				      const struct thread_state *record);
/* Returns why a walk found nothing: -EPERM, -ESRCH, or 0. */
int walk_error(const struct stack_walk *walk);
/* Notes that the words of the thread's stacks are wanted at this scan's end. The thread may be a
 * waker without a sample. */
void live_stacks_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel);

/* Adds a stack that a sample of that user has to the dictionary of the callback that keeps one
 * (source->stack_take), which gets it when the names of its functions are known. */
void live_dictionary_add(struct live_stacks *stacks, uint32_t stack, int64_t uid);
/* Implements source->stacks_anew. */
void live_dictionary_anew(struct live_stacks *stacks);
/* Implements source->stacks_end: waits for the names, but not for ever. */
void live_dictionary_end(struct live_stacks *stacks);
/* Hands over the stacks whose names are known; all: the others, too, as they are. */
void live_dictionary_give(struct live_stacks *stacks, bool all);

/* Stacks of the threads that woke the sampled ones last (--off-wake). What a waker did when it woke
 * another thread is not known: nothing is read at wake-ups. Its stack is the one that it has in
 * this scan, or, while that can't be read as it runs, the one of its own last sample. */
void live_wakers_init(struct live_stacks *stacks);
/* Notes that the stacks of the sample's waker are wanted. */
void live_wakers_want(struct live_stacks *stacks, const struct sample *sample);
/* Finds the wakers that are wanted, are off their CPUs and have no stacks of this scan yet, in
 * turn: *at starts at 0. False: there are no more, and none is wanted any longer. */
bool live_wakers_next(struct live_stacks *stacks, size_t *at, struct thread_state *record);
void live_wakers_fill(struct live_stacks *stacks, struct sample *sample);

#endif
