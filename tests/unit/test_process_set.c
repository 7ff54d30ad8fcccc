/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selected processes that end, and whose ids are reused. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "proc/process_set.h"
#include "fake_proc.h"

#define TICK_NS 10000000ull /* tick of /proc on all hosts that tsnap runs on */

static int64_t last_gone;

static void gone(void *to, int64_t pid)
{
	++*(int *)to;
	last_gone = pid;
}

static int check_gone(struct process_set *set)
{
	int count = 0;

	process_set_check(set, false, gone, &count);
	return count;
}

static void stat_put(const struct fake_proc *proc, int pid, int start_ticks)
{
	char text[256];
	int length = snprintf(text, sizeof(text), "%d (p) S 1", pid);

	for (int field = 5; field <= 52; field++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " %d",
				   field == 22 ? start_ticks : 0);
	fake_proc_put_process(proc, pid, "stat", text);
}

/* Without a pidfd start times distinguish processes. */
static void by_start_time(void **state)
{
	struct process_set set;
	struct fake_proc proc;

	fake_proc_init(&proc);
	stat_put(&proc, 10, 1000);
	stat_put(&proc, 11, 1000);
	process_set_init(&set, proc.root);
	set.pidfds = false;
	assert_true(process_set_add(&set, 10, 0));
	assert_true(process_set_add(&set, 10, 0));
	assert_true(process_set_add(&set, 11, 1000 * TICK_NS + 5));
	assert_false(process_set_add(&set, 12, 0));
	assert_int_equal(check_gone(&set), 0);
	stat_put(&proc, 10, 2000);
	assert_int_equal(check_gone(&set), 1);
	assert_int_equal(last_gone, 10);
	assert_int_equal(check_gone(&set), 0);
	/* a record of the old process does not add the new one; its own record does */
	assert_false(process_set_add(&set, 10, 1000 * TICK_NS));
	assert_true(process_set_add(&set, 10, 2000 * TICK_NS));
	stat_put(&proc, 10, 3000);
	assert_int_equal(check_gone(&set), 1);
	process_set_done(&set);
	fake_proc_done(&proc);
}

/* Children of a process that ended are its own if they began before its id was reused. */
static void parents(void **state)
{
	struct process_set set;
	struct fake_proc proc;

	fake_proc_init(&proc);
	stat_put(&proc, 10, 1000);
	process_set_init(&set, proc.root);
	set.pidfds = false;
	assert_true(process_set_add(&set, 10, 0));
	assert_true(process_set_has_parent(&set, 10, 1500 * TICK_NS));
	assert_false(process_set_has_parent(&set, 10, 900 * TICK_NS));
	assert_false(process_set_has_parent(&set, 11, 1500 * TICK_NS));
	stat_put(&proc, 10, 2000);
	assert_int_equal(check_gone(&set), 1);
	assert_true(process_set_has_parent(&set, 10, 1500 * TICK_NS));
	assert_false(process_set_has_parent(&set, 10, 2000 * TICK_NS));
	process_set_done(&set);
	fake_proc_done(&proc);
}

/* A zombie keeps its id until it is waited for. */
static void by_pidfd(void **state)
{
	struct process_set set;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	process_set_init(&set, "/proc");
	assert_true(process_set_add(&set, pid, 0));
	assert_int_equal(check_gone(&set), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(check_gone(&set), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(check_gone(&set), 1);
	assert_int_equal(last_gone, pid);
	assert_true(process_set_has_parent(&set, pid, (uint64_t)clock_boot_ns() - TICK_NS));
	process_set_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_start_time),
		cmocka_unit_test(parents),
		cmocka_unit_test(by_pidfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
