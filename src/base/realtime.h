/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real-time priority (SCHED_FIFO) of the calling thread for short times in which it must not wait
 * for a CPU. Threads and processes that it starts do not inherit it.
 *
 * One thread uses a struct realtime. Between realtime_begin() and realtime_end() nothing else of
 * normal priority runs on its CPU, so code that may take long there calls realtime_limit() now and
 * then: beyond the budget the thread continues at its normal priority.
 */
#ifndef TSNAP_BASE_REALTIME_H
#define TSNAP_BASE_REALTIME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* SCHED_RESET_ON_FORK is in some versions of glibc's header with _GNU_SOURCE only;
 * include/uapi/linux/sched.h */
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

#define REALTIME_BUDGET_NS 1000000 /* longest stretch between two sleeps */

struct realtime {
	bool unwanted;	  /* the caller wants no real-time priority */
	bool owned;	  /* the user has given the thread such a policy, which stays */
	int err;	  /* -errno of the kernel's refusal, after which no other try is made */
	bool raised;	  /* the thread has the priority now */
	int policy;	  /* the thread's own policy, for example SCHED_OTHER */
	int64_t from_ns;  /* begin of the present stretch, monotonic */
	int64_t ended_ns; /* time when the priority was last given up, before any wait for a CPU */
	uint64_t over_count; /* number of stretches that used up their budget */
};

/* Tries once whether the kernel permits the priority. A thread that its user has given a real-time
 * policy keeps that policy. */
void realtime_init(struct realtime *realtime, bool wanted);
/* Raises the priority, if it is permitted. */
void realtime_begin(struct realtime *realtime);
/* Restarts the budget: the thread has just slept. */
void realtime_restart(struct realtime *realtime);
/* Goes back to normal priority if the budget is used up. */
void realtime_limit(struct realtime *realtime);
/* Goes back to the policy and nice value that the thread had. */
void realtime_end(struct realtime *realtime);

#endif
