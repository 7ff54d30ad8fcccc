/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A raised priority for a short piece of work that others wait for, such as the start: real-time
 * (SCHED_FIFO) for at most PRIORITY_BUDGET_US of CPU time at a stretch, then nice -20. nice alone
 * does not help where each session has its own share of the CPUs (sched_autogroup, sched(7)).
 */
#ifndef TSNAP_BASE_PRIORITY_H
#define TSNAP_BASE_PRIORITY_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/realtime.h"

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
