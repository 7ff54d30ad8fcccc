/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of single waits (--slower) from samples: stacks of sleeps (offcpu), and, in the same way,
 * why a thread did not get a CPU (runq). When a sleep ends its stack is gone, and reading it at the
 * start of each sleep would cost time at every switch. So the stack is taken from a scan's sample
 * within the sleep: a thread that a scan saw asleep between the start and the end of a sleep slept
 * all of that time. A sleep that no scan saw has no stack.
 *
 * Events of a scan's time come after its samples, so that only the last two sleeps of a thread are
 * needed. Memory is bounded: when it is full, all sleeps are dropped.
 */
#ifndef TSNAP_REPORT_SLEEP_STACKS_H
#define TSNAP_REPORT_SLEEP_STACKS_H

#include <stddef.h>

#include "base/index.h"
#include "report/event_list.h"
#include "sample/sample.h"

#define SLEEP_STACKS_MAX 65536 /* limit of threads */

/* A zeroed struct is empty. */
struct sleep_stacks {
	struct keyed threads; /* two of struct sleep_stack, by tid, the last one first */
};

/* Notes a sample: its stacks, if its thread is asleep; the reason that it does not run, in RQ. */
void sleep_stacks_note(struct sleep_stacks *stacks, const struct sample *sample);
/* Fills an event of duration_ns that ended at who->time_us: the stacks of a sleep (which has a
 * state), or, for a wait for a CPU (runnable), the reason that the thread did not run. */
void sleep_stacks_fill(const struct sleep_stacks *stacks, struct sample *who, bool runnable,
		       int64_t duration_ns);
/* Forgets all sleeps; call before texts of samples are freed. */
void sleep_stacks_clear(struct sleep_stacks *stacks);
void sleep_stacks_done(struct sleep_stacks *stacks);

/* Sleeps with the same stack. */
struct sleep_sum {
	int64_t ustack, kstack; /* hashes; both ABSENT: no scan saw them */
	const char *stack;	/* stack of the last of the sleeps; NULL: none */
	int64_t count, duration_ns;
	int64_t ended_us; /* end of the last of them */
};

/* Sums of the sleeps among the events, the longest first, those without a stack last. The caller
 * frees them. */
struct sleep_sum *sleep_sums_make(const struct event_list *events, size_t *count);

#endif
