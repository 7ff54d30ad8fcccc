/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real-time priority (SCHED_FIFO) of the calling thread for short times in which it must not wait
 * for a CPU. What it starts does not inherit it.
 *
 * One thread uses a struct realtime. Between realtime_begin() and realtime_end() nothing else of
 * normal priority runs on its CPU, so code that may take long there asks realtime_limit() now and
 * then: beyond the budget the thread goes on at its normal priority.
 */
#ifndef TSNAP_BASE_REALTIME_H
#define TSNAP_BASE_REALTIME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* glibc's header has it with _GNU_SOURCE alone in some versions; include/uapi/linux/sched.h */
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

#define REALTIME_BUDGET_NS 1000000 /* longest stretch between two sleeps */

struct realtime {
	bool unwanted;	     /* the caller does without real-time priority */
	bool owned;	     /* the thread's user has given it such a policy: it stays */
	int err;	     /* -errno of the kernel's refusal, after which it is not asked again */
	bool raised;	     /* the thread has the priority now */
	int policy;	     /* the thread's own, SCHED_OTHER or such */
	int64_t from_ns;     /* begin of the present stretch, monotonic */
	int64_t ended_ns;    /* when the priority was given up last, before any wait for a CPU */
	uint64_t over_count; /* stretches that used their budget up */
};

/* Asks the kernel once whether the priority may be had. A thread that its user has given a
 * real-time policy keeps that one. */
void realtime_init(struct realtime *realtime, bool wanted);
/* Raises the priority, if it may be had. */
void realtime_begin(struct realtime *realtime);
/* Begins the budget anew: the thread has just slept. */
void realtime_restart(struct realtime *realtime);
/* Goes back to normal priority where the budget is used up. */
void realtime_limit(struct realtime *realtime);
/* Goes back to the policy and nice value that the thread had. */
void realtime_end(struct realtime *realtime);

#endif
