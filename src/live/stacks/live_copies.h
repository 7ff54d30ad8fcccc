/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of threads that left their CPUs before the capture window (live_kept.h) and may run again
 * at any time: the thread that scans copies them right after the moment, while it has real-time
 * priority; they are walked at leisure. A copy counts if the thread has not run until it was made.
 * Those that wait for a CPU come first, then those that have slept for the shortest time; what is
 * not reached within the budget is left to be read later. What was copied once is known to who
 * reads it, until the thread runs.
 *
 * A copy may have to wait, for a lock of the process or a page; the keeper finds that out
 * (cli/keeper). Scans with stacks wait for each other anyhow (struct sampler_options, alone).
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_COPIES_H
#define TSNAP_LIVE_STACKS_LIVE_COPIES_H

#include "base/index.h"
#include "base/user_registers.h"
#include "live/sampler/live_capture.h"
#include "maps/kept_stacks.h"
#include "maps/register_asker.h"
#include "sample/filter/filter.h"
#include "unwind/thread_memory.h"

struct stack_copy {
	uint32_t tid;	   /* as the kernel numbers it */
	uint64_t sequence; /* of the switch out */
	bool registers_known;
	struct user_registers registers;
	const char *stack; /* the top of the user's, from registers.sp on */
	size_t stack_bytes;
	const char *kernel; /* text of /proc/TID/stack; NULL: not read */
};

/* Zeroed is empty. Nobody else looks at it while a scan is captured. */
struct live_copies {
	bool user, kernel; /* which stacks */
	const char *proc_root;
	struct register_asker *asker;
	const struct kept_stacks *kept; /* what these have need not be copied */
	struct thread_memory memory;
	struct stack_copy *copies; /* of the last scan */
	size_t count, capacity;
	char *bytes; /* what they point into: all that a scan can have */
	size_t used;
	struct index at;	   /* tid to its number in copies */
	struct index known, again; /* tid to sequence: of the last scan's, and of this one */
};

struct live;

/* Where stacks are wanted. After live_kept_open(). */
void live_copies_open(struct live *live);
void live_copies_close(struct live_copies *copies); /* also of zeroed ones */
/* Copies the stacks of those captured; as struct capture_wants has it. */
void live_copies_make(void *of, struct thread_table *table, const struct filter *filter,
		      const struct live_capture *capture);

/* The copy of the thread's stacks since that switch out; NULL: there is none. */
const struct stack_copy *live_copies_find(const struct live_copies *copies, uint32_t tid,
					  uint64_t sequence);

#endif
