/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/priority: raised, bounded, passed on, and restored. */
#include "unit.h"
#include "base/clock.h"
#include "base/priority.h"

#include <sched.h>
#include <sys/wait.h>

#define REALTIME (SCHED_FIFO | SCHED_RESET_ON_FORK)
#define MOST_NS (30 * NS_PER_SECOND) /* longest wait, also for another's real-time threads */

static int own_policy(void)
{
	return sched_getscheduler(0);
}

static int own_nice(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* Uses CPU time until the priority is lost, twice the budget at most. Returns its CPU time in
 * us. */
static int64_t spin(void)
{
	int64_t from_ns = clock_cpu_ns(), begun_ns = clock_monotonic_ns();

	while (own_policy() == REALTIME && clock_monotonic_ns() - begun_ns < MOST_NS &&
	       clock_cpu_ns() - from_ns < 2000ll * PRIORITY_BUDGET_US)
		;
	return (clock_cpu_ns() - from_ns) / NS_PER_US;
}

static void require_rights(void)
{
	struct priority before;
	bool raised;

	priority_raise(&before, true);
	raised = before.raised && before.realtime.raised;
	priority_restore(&before);
	if (!raised)
		skip();
}

static void is_as_before(int nice)
{
	struct rlimit limit;
	struct sigaction action;

	assert_int_equal(own_policy() & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	assert_int_equal(own_nice(), nice);
	assert_int_equal(getrlimit(RLIMIT_RTTIME, &limit), 0);
	assert_true(limit.rlim_cur == RLIM_INFINITY);
	assert_int_equal(sigaction(SIGXCPU, NULL, &action), 0);
	assert_true(action.sa_handler == SIG_DFL);
}

static void raised_and_restored(void **state)
{
	struct priority before;

	require_rights();
	for (int realtime = 0; realtime < 2; realtime++) {
		priority_raise(&before, realtime);
		assert_int_equal(own_policy() == REALTIME, realtime);
		assert_int_equal(own_nice(), -20);
		priority_restore(&before);
		is_as_before(before.nice);
	}
}

static void bounded(void **state)
{
	struct priority before;
	int64_t us;

	require_rights();
	priority_raise(&before, true);
	us = spin();
	assert_int_equal(own_policy() & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	assert_int_equal(own_nice(), -20);
	assert_in_range(us, PRIORITY_BUDGET_US / 2, PRIORITY_BUDGET_US * 3 / 2);
	priority_restore(&before);
	is_as_before(before.nice);
}

static bool had_realtime; /* the parent had it when it passed it on: a sanitizer's fork may take
			     longer than it lasts */

/* Returns what a child process finds of itself, as bits: real-time, nice -20, bounded. */
static int child_of(bool passed)
{
	int go[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (read(go[0], &byte, 1) != 1)
			_exit(100);
		status = own_policy() == REALTIME;
		status |= (own_nice() == -20) << 1;
		spin();
		status |= (own_policy() != REALTIME) << 2;
		_exit(status);
	}
	had_realtime = own_policy() == REALTIME;
	if (passed)
		priority_pass_on(child);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(go[0]);
	close(go[1]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void passed_on_to_one_child(void **state)
{
	struct priority before;
	int child;

	require_rights();
	priority_raise(&before, true);
	child = child_of(true);
	assert_int_equal(child, had_realtime ? 7 : 6);
	assert_int_equal(child_of(false), 4); /* without passing on, the child has no priority */
	priority_restore(&before);
	is_as_before(before.nice);
	if (before.nice >= 0)
		assert_int_equal(child_of(true), 4);
	priority_raise(&before, false);
	assert_int_equal(child_of(true), 6);
	assert_int_equal(child_of(false), 4);
	priority_restore(&before);
}

static void lowered_by_the_user(void **state)
{
	const struct sched_param none = {.sched_priority = 0};
	struct priority before;

	require_rights();
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	priority_raise(&before, true);
	assert_int_equal(own_policy() & ~SCHED_RESET_ON_FORK, SCHED_BATCH);
	assert_int_equal(own_nice(), before.nice);
	priority_restore(&before);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
	assert_int_equal(setpriority(PRIO_PROCESS, 0, 5), 0);
	priority_raise(&before, true);
	assert_int_equal(own_policy() & ~SCHED_RESET_ON_FORK, SCHED_OTHER);
	assert_int_equal(own_nice(), 5);
	priority_restore(&before);
	is_as_before(5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raised_and_restored), cmocka_unit_test(bounded),
		cmocka_unit_test(passed_on_to_one_child),
		cmocka_unit_test(lowered_by_the_user), /* last test: the priority remains lowered */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
