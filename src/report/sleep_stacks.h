/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of single waits (--slower) from samples: stacks of sleeps (offcpu), and why a thread did
 * not get a CPU (runq, the same way). When a sleep ends its stack is gone, and reading it when each
 * begins would cost every switch. So it is that of a scan's sample in the midst of the sleep: a
 * thread that a scan saw asleep between the two moments has slept since the first one. A sleep that
 * no scan saw has none.
 *
 * Events of a scan's time come after its samples, so that the last two sleeps of a thread are all
 * that is asked for. In bounded memory: where there is no more room all begins anew.
 */
#ifndef TSNAP_REPORT_SLEEP_STACKS_H
#define TSNAP_REPORT_SLEEP_STACKS_H

#include <stddef.h>

#include "base/keyed.h"
#include "report/event_list.h"
#include "sample/sample.h"

#define SLEEP_STACKS_MAX 65536 /* threads */

/* Zeroed is empty. */
struct sleep_stacks {
	struct keyed threads; /* two of struct sleep_stack, by tid, the last one first */
};

/* Takes note of a sample: its stacks, if its thread is asleep; why it does not run, in RQ. */
void sleep_stacks_note(struct sleep_stacks *stacks, const struct sample *sample);
/* Fills an event of so long that ended at who->time_us: the stacks of a sleep (it has a state), why
 * it did not run of a wait for a CPU (runnable). */
void sleep_stacks_fill(const struct sleep_stacks *stacks, struct sample *who, bool runnable,
		       int64_t duration_ns);
/* Forgets all: before texts of samples go. */
void sleep_stacks_clear(struct sleep_stacks *stacks);
void sleep_stacks_done(struct sleep_stacks *stacks);

/* Sleeps with the same stack. */
struct sleep_sum {
	int64_t ustack, kstack; /* both ABSENT: no scan saw them */
	const char *stack;	/* stack as the last of the sleeps tells it; NULL: there is none */
	int64_t count, duration_ns;
	int64_t ended_us; /* the last of them */
};

/* Sums of the sleeps among the events, the longest first, those without a stack last. The caller
 * frees them. */
struct sleep_sum *sleep_sums_make(const struct event_list *events, size_t *count);

#endif
