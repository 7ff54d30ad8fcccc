/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/priority.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

/* Lowest real-time priority, which is above all threads of normal priority; higher ones are left to
 * threads whose users have chosen them. */
#define PRIORITY 1

/* Sets policy and priority. The kernel keeps the nice value. SCHED_RESET_ON_FORK stays set, because
 * clearing it needs CAP_SYS_NICE: threads and processes that are started later do not inherit a
 * nice value below 0. */
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

#define NICE_RAISED (-20)
#define WAIT_MOST_NS (200 * NS_PER_MS) /* longest wait for a CPU at real-time priority */

static bool starved; /* real-time priority did not help */

/* Handler of SIGXCPU, which the kernel sends to the thread that has used up its budget. */
static void budget_used(int number)
{
	int err = errno;

	(void)number;
	policy_set(SCHED_OTHER, 0);
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
	policy_set(SCHED_OTHER, 0);
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
		policy_set(SCHED_OTHER, 0);
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
