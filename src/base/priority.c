/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/priority.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#define NICE_RAISED (-20)
#define WAIT_MOST_NS (200 * NS_PER_MS) /* longest wait for a CPU at real-time priority */

static bool starved; /* real-time priority did not help */

/* Goes back to SCHED_OTHER. Threads and processes that are started later do not inherit a nice
 * value below 0 (SCHED_RESET_ON_FORK). */
static void policy_normal(void)
{
	const struct sched_param normal = {.sched_priority = 0};

	sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &normal);
}

/* Handler of SIGXCPU, which the kernel sends to the thread that has used up its budget. */
static void budget_used(int number)
{
	int err = errno;

	(void)number;
	policy_normal();
	errno = err;
}

/* Sets the budget before the priority is raised. False: nothing would limit it. */
static bool budget_set(struct priority *before)
{
	const struct sigaction action = {.sa_handler = budget_used, .sa_flags = SA_RESTART};
	struct rlimit limit;

	if (getrlimit(RLIMIT_RTTIME, &before->limit) ||
	    sigaction(SIGXCPU, &action, &before->action))
		return false;
	limit = before->limit;
	if (limit.rlim_cur > PRIORITY_BUDGET_US)
		limit.rlim_cur = PRIORITY_BUDGET_US;
	if (!setrlimit(RLIMIT_RTTIME, &limit))
		return true;
	sigaction(SIGXCPU, &before->action, NULL);
	return false;
}

static void budget_restore(const struct priority *before)
{
	setrlimit(RLIMIT_RTTIME, &before->limit);
	sigaction(SIGXCPU, &before->action, NULL);
}

/* Raises nice of the calling thread alone: in the kernel it is the thread's, by POSIX it would be
 * the process's. */
void priority_raise(struct priority *before, bool realtime)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	*before = (struct priority){0};
	errno = 0;
	before->nice = getpriority(PRIO_PROCESS, 0);
	if (errno || before->nice > 0 || policy != SCHED_OTHER)
		return;
	policy_normal();
	before->raised = before->nice != NICE_RAISED && !setpriority(PRIO_PROCESS, 0, NICE_RAISED);
	realtime = realtime && !starved;
	realtime_init(&before->realtime, realtime);
	if (!realtime || before->realtime.err || !budget_set(before))
		return;
	realtime_begin(&before->realtime);
	if (!before->realtime.raised)
		budget_restore(before);
}

void priority_pass_on(pid_t child)
{
	int policy = sched_getscheduler(0), nice = getpriority(PRIO_PROCESS, 0);
	struct sched_param param;

	if (nice < 0)
		setpriority(PRIO_PROCESS, (id_t)child, nice);
	if (policy == (SCHED_FIFO | SCHED_RESET_ON_FORK) && !sched_getparam(0, &param))
		sched_setscheduler(child, policy, &param);
}

/* Returns how long the process has waited for a CPU until now
 * (Documentation/scheduler/sched-stats.rst); 0: the kernel does not count it. */
static uint64_t waited_ns(pid_t process)
{
	char path[48];
	uint64_t waited = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)process);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*u %" SCNu64, &waited) != 1)
		waited = 0;
	fclose(file);
	return waited;
}

void priority_watch(pid_t child)
{
	const struct sched_param normal = {.sched_priority = 0};

	if (sched_getscheduler(child) != (SCHED_FIFO | SCHED_RESET_ON_FORK) ||
	    waited_ns(child) < WAIT_MOST_NS)
		return;
	starved = true;
	sched_setscheduler(child, SCHED_OTHER | SCHED_RESET_ON_FORK, &normal);
	if (sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK))
		policy_normal();
}

void priority_restore(const struct priority *before)
{
	struct realtime realtime = before->realtime;

	if (realtime.raised) {
		realtime_end(&realtime);
		budget_restore(before);
	}
	if (before->raised)
		setpriority(PRIO_PROCESS, 0, before->nice);
}
