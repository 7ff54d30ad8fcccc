/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/realtime.h"
#include "base/clock.h"

#include <errno.h>

/* Lowest real-time priority, which is above all threads of normal priority; higher ones are left to
 * threads whose users have chosen them. */
#define PRIORITY 1

/* Sets policy and priority. SCHED_RESET_ON_FORK stays set: clearing it needs CAP_SYS_NICE. The
 * kernel keeps the nice value. */
static int policy_set(int policy, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param) ? -errno : 0;
}

void realtime_init(struct realtime *realtime, bool wanted)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	*realtime = (struct realtime){.unwanted = !wanted, .policy = policy};
	realtime->owned = policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE;
	realtime_begin(realtime);
	realtime_end(realtime);
}

void realtime_begin(struct realtime *realtime)
{
	if (realtime->unwanted || realtime->owned || realtime->err || realtime->raised)
		return;
	realtime->err = policy_set(SCHED_FIFO, PRIORITY);
	realtime->raised = !realtime->err;
	realtime_restart(realtime);
}

void realtime_restart(struct realtime *realtime)
{
	realtime->from_ns = clock_monotonic_ns();
}

void realtime_limit(struct realtime *realtime)
{
	if (!realtime->raised || clock_monotonic_ns() - realtime->from_ns < REALTIME_BUDGET_NS)
		return;
	realtime->over_count++;
	realtime_end(realtime);
}

void realtime_end(struct realtime *realtime)
{
	if (!realtime->raised)
		return;
	/* the call itself may have to wait for a CPU */
	realtime->ended_ns = clock_monotonic_ns();
	policy_set(realtime->policy, 0);
	realtime->raised = false;
}
