/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads in a scan that are off their CPUs: such a stack stands still until the next
 * switch, whose number tells that it did; and the same number as last time, that it is the same.
 */
#ifndef TSNAP_LIVE_STACKS_H
#define TSNAP_LIVE_STACKS_H

#include <stdint.h>

#include "base/cache.h"
#include "kernel/kernel.h"
#include "sample/source.h"
#include "stack/python_frames.h"
#include "stack/stack_table.h"
#include "stack/unwinder.h"

/* A thread of this scan whose stacks are to be read, and its sample. */
struct stack_wait {
	struct thread_state record;
	size_t sample;
	int64_t start_ns;
};

/* A sample of this scan whose stacks are to be told in words. */
struct stack_telling {
	size_t sample;
	uint32_t user, kernel;
};

struct live_stacks {
	uint64_t needs; /* NEED_USTACK, NEED_KSTACK, NEED_STACK; 0: nothing is done */
	const char *proc_root;
	struct module_table modules;
	struct unwinder unwinder;
	bool python_wanted;
	struct python_frames python;
	struct stack_names *names;
	struct stack_table table;
	struct cache threads;
	struct stack_wait waiting[ASK_MAX];
	uint32_t waiting_count;
	struct stack_telling *tellings;
	size_t telling_count, telling_capacity;
	uint64_t moved_count;  /* stacks thrown away: the thread ran meanwhile */
	uint64_t unread_count; /* that the kernel does not show, or whose registers are not known */
	uint64_t kernel_refused_count;
	uint64_t reused_count, clear_count;
};

struct live;

/* python: user stacks have the functions of Python programs, too. */
void live_stacks_init(struct live_stacks *stacks, const char *proc_root, uint64_t needs,
		      bool python);
void live_stacks_done(struct live_stacks *stacks); /* also of a zeroed one */
/* Forgets all: before the records' numbers begin anew. */
void live_stacks_clear(struct live_stacks *stacks);

/* Fills the stacks of the sample with that index, or has them wait for live_stacks_tell(). */
void live_stacks_add(struct live *live, const struct thread_state *record, size_t sample);
/* At the end of a part of a scan: reads those that wait, and fills the words of all its samples. */
void live_stacks_tell(struct live *live);

/* Adds what the foot of a report tells. */
void live_stacks_describe(const struct live_stacks *stacks, struct source_facts *facts);

#endif
