/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsers and walks over the fixture tree, and over this test's own threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "proc/proc.h"
#include "fake_proc.h"
#include "sleeper.h"

#define ROOT FIXTURES "/proc"
/* fields of stat after ppid and pgrp, with flags 64 and starttime 55, to the last one */
#define FIELDS_FROM_6 \
	" 1 0 -1 64 0 0 0 0 3 4 0 0 20 0 1 0 55 0 0 18446744073709551615" ZEROS_11 " 0 17 2 0 6\n"
#define ZEROS_11 " 0 0 0 0 0 0 0 0 0 0 0"

static void stat_of_fixture(void **state)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(ROOT, 9000001, 9000001, &stat), 0);
	assert_int_equal(stat.tid, 9000001);
	assert_int_equal(stat.ppid, 0);
	assert_string_equal(stat.comm, "init");
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.flags, 0x400040);
	assert_int_equal(stat.user_ticks, 11);
	assert_int_equal(stat.system_ticks, 7);
	assert_int_equal(stat.start_ticks, 1234);
	assert_int_equal(stat.cpu, 1);
	assert_int_equal(proc_stat_read(ROOT, 0, 9000004, &stat), 0);
	assert_string_equal(stat.comm, "kworker/u4:2-events_unbound");
	assert_true(stat.flags & 0x200000);
}

static void stat_of_hostile_comm(void **state)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(ROOT, 9000002, 9000003, &stat), 0);
	assert_string_equal(stat.comm, "a) R 1 (\nb,\"x");
	assert_int_equal(stat.state, 'D');
	assert_int_equal(stat.ppid, 9000001);
	assert_int_equal(stat.cpu, 63);
	assert_true(stat.start_ticks == UINT64_MAX);
}

/* State between the end of a process and that of its entry in /proc: seen on a full host. */
static void stat_of_reaped_process(void **state)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_parse("5 (brief) X 0 -1" FIELDS_FROM_6, &stat), 0);
	assert_true(stat.reaped);
	assert_int_equal(proc_stat_parse("5 (kthreadd) S 0 0" FIELDS_FROM_6, &stat), 0);
	assert_false(stat.reaped);
}

static void stat_comm_is_cut(void **state)
{
	struct proc_stat stat;

	assert_int_equal(
		proc_stat_parse(
			"1 (0123456789012345678901234567890123456789"
			"01234567890123456789012345678901234567890123456789) R 2 1" FIELDS_FROM_6,
			&stat),
		0);
	assert_int_equal(strlen(stat.comm), PROC_COMM_SIZE - 1);
	assert_int_equal(proc_stat_parse("1 () R 2 1" FIELDS_FROM_6, &stat), 0);
	assert_string_equal(stat.comm, "");
	assert_int_equal(stat.flags, 64);
	assert_int_equal(stat.start_ticks, 55);
	assert_int_equal(stat.cpu, 2);
}

static void stat_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"12",
		"12 (x",
		"12 )x(",
		"12 (x)",
		"12 (x) R",
		"12 (x) R 1 1 1 1\n",
		"x (x) R 2 1" FIELDS_FROM_6,
		"12 (x) 5 2 1" FIELDS_FROM_6,
		"12 (x) R -2 1" FIELDS_FROM_6,
		"12 (x) R 2147483648 1" FIELDS_FROM_6,
		"12 (x) R 18446744073709551616 1" FIELDS_FROM_6,
		"12 (x) R  2 1" FIELDS_FROM_6,
		"2147483648 (x) R 2 1" FIELDS_FROM_6,
	};
	struct proc_stat stat = {.tid = 77};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (proc_stat_parse(bad[i], &stat) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(stat.tid, 77);
	assert_int_equal(proc_stat_read(ROOT, 9000001, 9000002, &stat), -ENOENT);
}

static void syscall_of_fixture(void **state)
{
	struct proc_syscall call;

	assert_int_equal(proc_syscall_read(ROOT, 9000001, 9000001, &call), 0);
	assert_false(call.running);
	assert_int_equal(call.nr, 232);
	assert_int_equal(call.arg[0], 4);
	assert_true(call.arg[3] == UINT64_MAX);
	assert_true(call.sp == 0x7ffc11e0b0b0);
	assert_true(call.pc == 0x7f3b6c1d2e66);
	assert_int_equal(proc_syscall_read(ROOT, 9000002, 9000003, &call), 0);
	assert_int_equal(call.nr, -1);
	assert_int_equal(call.arg[0], 0);
	assert_true(call.sp == 0x7f12b17fdd40);
	assert_true(call.pc == 0x7f12b2c3a1ac);
	assert_int_equal(proc_syscall_parse("running\n", &call), 0);
	assert_true(call.running);
	assert_int_equal(call.nr, -1);
}

static void syscall_refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"0",
		"0 0x1 0x2",
		"-1",
		"-1 0 0 0 0 0 0 0 0",
		"1 1 2 3 4 5 6 7",
		"1 1 2 3 4 5 6 7 8 9",
		"1 1 2 3 4 5 6 7 x",
		"1 1 2 3 4 5 6 7 0x10000000000000000",
		"99999999999999999999 1 2 3 4 5 6 7 8",
	};
	struct proc_syscall call = {.nr = 77};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (proc_syscall_parse(bad[i], &call) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(call.nr, 77);
}

static void ids_of_fixture(void **state)
{
	int64_t uid = -1, tgid = -1;

	assert_int_equal(proc_ids_read(ROOT, 9000002, &uid, &tgid), 0);
	assert_int_equal(uid, 33);
	assert_int_equal(tgid, 9000002);
	/* a name that the kernel would not allow can't forge a line's middle either */
	assert_int_equal(
		proc_ids_parse("Name:\tUid:\t1\t1\nTgid:\t5\nUid:\t2\t3\t4\t5\n", &uid, &tgid), 0);
	assert_int_equal(uid, 3);
	assert_int_equal(tgid, 5);
	assert_int_equal(proc_ids_parse("Tgid:\t5\nUid:\t2\n", &uid, &tgid), -EINVAL);
	assert_int_equal(proc_ids_parse("Tgid:\t5\nUid:\t2\t4294967296\n", &uid, &tgid), -EINVAL);
	assert_int_equal(proc_ids_parse("Uid:\t2\t3\n", &uid, &tgid), -EINVAL);
	assert_int_equal(proc_ids_parse("", &uid, &tgid), -EINVAL);
	assert_int_equal(uid, 3);
	assert_int_equal(proc_ids_read(ROOT, 9000099, &uid, &tgid), -ENOENT);
}

static void texts_are_bounded(void **state)
{
	char few[5];

	assert_int_equal(proc_file_read(ROOT, 9000002, 9000002, "comm", few, sizeof(few)), 4);
	assert_string_equal(few, "serv");
	assert_int_equal(proc_link_read(ROOT, 9000002, 9000002, "exe", few, sizeof(few)),
			 -ENAMETOOLONG);
	assert_int_equal(proc_link_read(ROOT, 9000002, 9000002, "comm", few, sizeof(few)), -EINVAL);
}

#define SEEN_MAX 16

struct seen {
	size_t count, stop_at;
	int64_t pid[SEEN_MAX], tid[SEEN_MAX];
};

static int see(void *to, int64_t pid, int64_t tid)
{
	struct seen *seen = to;

	assert_true(seen->count < SEEN_MAX);
	seen->pid[seen->count] = pid;
	seen->tid[seen->count++] = tid;
	return seen->count == seen->stop_at ? 42 : 0;
}

static bool was_seen(const struct seen *seen, int64_t pid, int64_t tid)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->pid[i] == pid && seen->tid[i] == tid)
			return true;
	return false;
}

static void walk_of_fixture(void **state)
{
	struct seen seen = {0}, stopped = {.stop_at = 2};

	assert_int_equal(proc_threads_walk(ROOT, see, &seen), 0);
	assert_int_equal(seen.count, 4);
	assert_true(was_seen(&seen, 9000001, 9000001));
	assert_true(was_seen(&seen, 9000002, 9000002));
	assert_true(was_seen(&seen, 9000002, 9000003));
	assert_true(was_seen(&seen, 9000004, 9000004));
	assert_int_equal(proc_threads_walk(ROOT, see, &stopped), 42);
	assert_int_equal(stopped.count, 2);
	assert_int_equal(proc_threads_walk(ROOT "/nowhere", see, &stopped), -ENOENT);
}

struct search {
	int64_t tid;
	int found;
};

static int search_visit(void *to, int64_t pid, int64_t tid)
{
	struct search *search = to;

	search->found += tid == search->tid && pid == getpid();
	return 0;
}

static void walk_of_this_host(void **state)
{
	struct sleeper sleeper;
	struct search own = {.tid = getpid()}, other = {0};

	assert_int_equal(proc_threads_walk("/proc", search_visit, &own), 0);
	assert_int_equal(own.found, 1);
	sleeper_start(&sleeper, -1);
	other.tid = sleeper.tid;
	assert_int_equal(proc_threads_walk("/proc", search_visit, &other), 0);
	assert_int_equal(other.found, 1);
	sleeper_stop(&sleeper);
}

#define CHILDREN 3000 /* more than fit into a page of text */

struct children {
	int count, limit;
	int64_t last;
};

static bool child_see(void *to, int64_t child)
{
	struct children *children = to;

	children->last = child;
	return ++children->count < children->limit;
}

static void all_children_are_seen(void **state)
{
	struct children all = {.limit = CHILDREN + 1}, some = {.limit = 2}, none = {0};
	struct fake_proc proc;
	struct text text = {0};

	for (int i = 1; i <= CHILDREN; i++)
		text_add_format(&text, "%d ", 100000 + i);
	fake_proc_init(&proc);
	fake_proc_put(&proc, 7, 8, "children", text_string(&text));
	proc_children_walk(proc.root, 7, 8, child_see, &all);
	assert_int_equal(all.count, CHILDREN);
	assert_int_equal(all.last, 100000 + CHILDREN);
	proc_children_walk(proc.root, 7, 8, child_see, &some);
	assert_int_equal(some.last, 100002);
	proc_children_walk(proc.root, 7, 7, child_see, &none);
	assert_int_equal(none.count, 0);
	fake_proc_done(&proc);
	text_done(&text);
}

static void syscall_of_own_thread(void **state)
{
	struct sleeper sleeper;
	struct proc_syscall call;
	struct proc_stat stat;

	sleeper_start(&sleeper, -1);
	assert_int_equal(proc_syscall_read("/proc", getpid(), sleeper.tid, &call), 0);
	assert_false(call.running);
	if (!sleeper_is_emulated()) {
		assert_int_equal(call.nr, SYS_read);
		assert_int_equal(call.arg[0], sleeper.ends[0]);
		assert_int_equal(call.arg[2], 1);
	}
	assert_int_equal(proc_stat_read("/proc", getpid(), sleeper.tid, &stat), 0);
	assert_int_equal(stat.tid, sleeper.tid);
	assert_int_equal(stat.ppid, getppid());
	assert_int_equal(stat.state, 'S');
	sleeper_stop(&sleeper);
}

static void owner_is_the_effective_uid(void **state)
{
	struct sleeper sleeper;
	int64_t uid = -1, status_uid = -1, tgid;

	assert_int_equal(proc_owner_read("/proc", getpid(), getpid(), &uid), 0);
	assert_int_equal(uid, geteuid());
	assert_int_equal(proc_owner_read("/proc", getpid(), 1, &uid), -ENOENT);
	if (geteuid()) {
		print_message("not root: a thread with an euid of its own is not tried\n");
		return;
	}
	sleeper_start(&sleeper, 4242);
	assert_int_equal(proc_owner_read("/proc", getpid(), sleeper.tid, &uid), 0);
	assert_int_equal(uid, 4242);
	assert_int_equal(proc_ids_read("/proc", sleeper.tid, &status_uid, &tgid), 0);
	assert_int_equal(status_uid, 4242);
	assert_int_equal(tgid, getpid());
	sleeper_stop(&sleeper);
}

struct found {
	int64_t *pids;
	size_t count;
	struct text missing;
};

/* Appends the processes found, and returns the text of those missing. */
static const char *find_below(const char *root, struct found *found, const char *text)
{
	text_clear(&found->missing);
	assert_int_equal(proc_pids_find(root, text, &found->pids, &found->count, &found->missing),
			 0);
	return text_string(&found->missing);
}

static const char *find(struct found *found, const char *text)
{
	return find_below(ROOT, found, text);
}

static void found_done(struct found *found)
{
	free(found->pids);
	text_done(&found->missing);
}

static void own_pid_is_that_of_proc(void **state)
{
	assert_int_equal(proc_own_pid(ROOT), 9000003);
	assert_int_equal(proc_own_pid("/proc"), getpid());
	assert_int_equal(proc_own_pid(ROOT "/sys"), getpid()); /* no own pid there */
}

static void pids_by_id(void **state)
{
	struct found found = {0};
	char own[16];

	assert_string_equal(find(&found, "9000004,9000001,9000004"), "");
	assert_int_equal(found.count, 2);
	assert_int_equal(found.pids[0], 9000004);
	assert_int_equal(found.pids[1], 9000001);
	assert_string_equal(find(&found, "9000002"), ""); /* appends to the last result */
	assert_int_equal(found.count, 3);
	assert_int_equal(found.pids[2], 9000002);

	assert_string_equal(find(&found, "9000077"), "9000077");
	assert_string_equal(find(&found, "99999999999999999999"), "99999999999999999999");
	assert_string_equal(find(&found, "0"), "0");
	assert_int_equal(found.count, 3);
	assert_string_equal(find(&found, "9000077,9000001,9000078"), "9000077,9000078");
	assert_int_equal(found.count, 4);

	snprintf(own, sizeof(own), "%d", getpid());
	assert_string_equal(find_below("/proc", &found, own), own);
	assert_int_equal(found.count, 4);
	found_done(&found);
}

static void pids_of_a_thread_are_refused(void **state)
{
	struct sleeper sleeper;
	struct found found = {0};
	char tid[16];

	sleeper_start(&sleeper, -1);
	snprintf(tid, sizeof(tid), "%d", sleeper.tid);
	assert_string_equal(find_below("/proc", &found, tid), tid);
	assert_int_equal(found.count, 0);
	sleeper_stop(&sleeper);
	found_done(&found);
}

static void pids_by_pattern(void **state)
{
	struct found found = {0};

	assert_string_equal(find(&found, "ini"), ""); /* comm, a part of it */
	assert_int_equal(found.count, 1);
	assert_int_equal(found.pids[0], 9000001);
	assert_string_equal(find(&found, "serv?r"), ""); /* comm, the whole */
	assert_int_equal(found.pids[1], 9000002);
	assert_string_equal(find(&found, "k[wx]*4:2*"), "");
	assert_int_equal(found.pids[2], 9000004);
	assert_string_equal(find(&found, "w[e]bd"), ""); /* program, which was deleted */
	assert_int_equal(found.pids[3], 9000002);
	assert_int_equal(found.count, 4);

	assert_string_equal(find(&found, "erv?r"), "erv?r");
	assert_string_equal(find(&found, "sbin"), "sbin");     /* not the base name's folder */
	assert_string_equal(find(&found, "splash"), "splash"); /* nor an argument */
	assert_string_equal(find(&found, "my"), "my");
	assert_string_equal(find(&found, ""), "");
	assert_int_equal(found.count, 4);
	found_done(&found);
}

static void pids_by_a_list(void **state)
{
	struct found found = {0};

	assert_string_equal(find(&found, "ini,none,serv?r,9000004,9000077,k[wx]*4:2*"),
			    "none,9000077");
	assert_int_equal(found.count, 3);
	assert_int_equal(found.pids[0], 9000004);
	assert_int_equal(found.pids[1] + found.pids[2], 9000001 + 9000002);
	/* both names match one process: neither is missing, and it is found once */
	assert_string_equal(find(&found, "serv?r,webd"), "");
	assert_int_equal(found.count, 4);
	assert_int_equal(found.pids[3], 9000002);
	assert_int_equal(proc_pids_find(ROOT "/nowhere", "ini", &found.pids, &found.count, NULL),
			 -ENOENT);
	assert_int_equal(found.count, 4);
	found_done(&found);
}

static void pids_never_this_process(void **state)
{
	struct found found = {0};

	assert_string_equal(find_below("/proc", &found, "*"), "");
	assert_true(found.count > 0);
	for (size_t i = 0; i < found.count; i++)
		assert_int_not_equal(found.pids[i], getpid());
	found_done(&found);
}

static void namespace_ids(void **state)
{
	int64_t pid = 1, tid = 2;

	assert_int_equal(proc_namespace_ids_parse("Name:\ta\nNStgid:\t4711\t70\t1\n"
						  "NSpid:\t4712\t71\t2\nNSpgid:\t9\n",
						  &pid, &tid),
			 0);
	assert_int_equal(pid, 1);
	assert_int_equal(tid, 2);
	assert_int_equal(proc_namespace_ids_parse("NStgid:\t5\nNSpid:\t6\n", &pid, &tid), 0);
	assert_int_equal(pid, 5);
	assert_int_equal(tid, 6);
	/* before 4.1, cut off, or nothing at all */
	assert_int_equal(proc_namespace_ids_parse("Tgid:\t5\n", &pid, &tid), -EINVAL);
	assert_int_equal(proc_namespace_ids_parse("NStgid:\t5\nNSpid:\t", &pid, &tid), -EINVAL);
	assert_int_equal(proc_namespace_ids_parse("NStgid:\t5\nNSpid:\t5\tx\n", &pid, &tid),
			 -EINVAL);
	assert_int_equal(proc_namespace_ids_parse("", &pid, &tid), -EINVAL);
	assert_int_equal(pid, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_of_fixture),
		cmocka_unit_test(stat_of_hostile_comm),
		cmocka_unit_test(stat_of_reaped_process),
		cmocka_unit_test(stat_comm_is_cut),
		cmocka_unit_test(stat_refuses),
		cmocka_unit_test(syscall_of_fixture),
		cmocka_unit_test(syscall_refuses),
		cmocka_unit_test(ids_of_fixture),
		cmocka_unit_test(texts_are_bounded),
		cmocka_unit_test(walk_of_fixture),
		cmocka_unit_test(walk_of_this_host),
		cmocka_unit_test(all_children_are_seen),
		cmocka_unit_test(syscall_of_own_thread),
		cmocka_unit_test(owner_is_the_effective_uid),
		cmocka_unit_test(own_pid_is_that_of_proc),
		cmocka_unit_test(pids_by_id),
		cmocka_unit_test(pids_of_a_thread_are_refused),
		cmocka_unit_test(pids_by_pattern),
		cmocka_unit_test(pids_by_a_list),
		cmocka_unit_test(pids_never_this_process),
		cmocka_unit_test(namespace_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
