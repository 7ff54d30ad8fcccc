/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A raised priority for a short piece of work that others wait for, such as the start: real-time
 * (SCHED_FIFO) for at most PRIORITY_BUDGET_US of CPU time at a stretch, then nice -20. nice alone
 * does not help where each session has its own share of the CPUs (sched_autogroup, sched(7)).
 */
#ifndef TSNAP_BASE_PRIORITY_H
#define TSNAP_BASE_PRIORITY_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Real-time priority (SCHED_FIFO) of the calling thread for short times in which it must not wait
 * for a CPU. Threads and processes that it starts do not inherit it.
 *
 * One thread uses a struct realtime. Between realtime_begin() and realtime_end() nothing else of
 * normal priority runs on its CPU, so code that may take long there calls realtime_limit() now and
 * then: beyond the budget the thread continues at its normal priority.
 */

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

/* Limit of CPU time without a sleep: RLIMIT_RTTIME, which ends in SIGXCPU. */
#define PRIORITY_BUDGET_US 500000

/* State before the priority was raised, to go back to. */
struct priority {
	bool raised;
	int nice;
	struct realtime realtime;
	struct rlimit limit;	 /* RLIMIT_RTTIME; valid where real-time was raised */
	struct sigaction action; /* action of SIGXCPU; valid where real-time was raised */
};

/* Raises the priority of the calling thread. Does nothing if that is refused, or if the user has
 * lowered the priority (nice above 0, SCHED_BATCH, SCHED_IDLE). realtime: real-time priority is
 * allowed. Children of the thread have normal priority: see priority_pass_on(). To be called for
 * one thread of the process at a time. */
void priority_raise(struct priority *before, bool realtime);
/* Gives a child process the raised priority of its parent, the calling thread, at once: by itself
 * the child would wait for a CPU first. The child has a budget of its own. */
void priority_pass_on(pid_t child);
/* Watches the child; to be called now and then while its parent, the calling thread, waits for it.
 * A control group may have hardly any real-time run time (cpu.rt_runtime_us, sched(7)): a real-time
 * thread there waits for a CPU for most of the time. Then both go back to nice -20, and
 * priority_raise() gives this process no more than that. */
void priority_watch(pid_t child);
/* Restores the priority; to be called by the thread that raised it. */
void priority_restore(const struct priority *before);

#endif
