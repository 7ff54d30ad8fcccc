/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the values that lookup_fill() gives, when it reads again, and that it never gives the texts
 * of another thread. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "live/resolve/lookup_stages.h"
#include "proc/proc.h"
#include "sample/needs_table.h"
#include "sample/proc_values.h"
#include "lookup_scene.h"
#include "sleeper.h"

#define ROOT FIXTURES "/proc"
#define NOW NS_PER_SECOND
#define NEED_ALL                                                                      \
	(NEED_USER | NEED_PPID | NEED_CMDLINE | NEED_EXE | NEED_SYSCALL | NEED_FILE | \
	 NEED_CGROUP | NEED_WAKER | NEED_WAKER_COMM | NEED_PARENT_COMM)

/* Order of stages: one that is above a stage whose facts it needs would fill nothing, in
 * silence. */
static void stages_are_in_order(void **state)
{
	uint64_t given = 0;

	for (size_t i = 0; i < lookup_stage_count; i++) {
		assert_int_equal(lookup_stages[i].wants & ~given, 0);
		given |= lookup_stages[i].gives;
	}
	/* these follow from other facts: sample_derive() */
	given |= NEED_COMMSUM | NEED_SCRIPT | NEED_CGROUP_NAMES;
	assert_int_equal((NEEDS_ANYTIME | NEEDS_PROC_VALUES) & ~given, 0);
}

static struct sample fill(struct scene *scene, uint64_t needs, int64_t now_ns)
{
	struct sample sample = scene->requested;

	lookup_fill(scene->lookup, &sample, &scene->hint, needs, now_ns);
	return sample;
}

/* Each need alone: a stage that reads facts kept of a thread, and does not declare that, would be
 * given none. */
static void each_need_alone(void **state)
{
	struct scene *scene = *state;
	static struct proc_values values;

	scene->requested.proc_values = &values;
	for (size_t i = 0; i < needs_row_count; i++)
		fill(scene, needs_rows[i].need, NOW);
}

static void put_read_call(struct sample *sample, int64_t fd)
{
	sample->call.nr = SYS_read;
	memset(sample->call.arg, 0, sizeof(sample->call.arg));
	sample->call.arg[0] = fd;
}

static void fixture_thread(void **state)
{
	struct lookup *lookup = lookup_new(ROOT);
	struct lookup_hint hint = {0};
	struct sample sample = *sample_absent();

	sample.thread.tid = 9000003;
	sample.thread.pid = 9000002;
	sample.thread.start_ns = 1;
	sample.thread.kthread = 0;
	lookup_fill(lookup, &sample, &hint, NEED_ALL, NOW);
	assert_int_equal(sample.process.ppid, 9000001);
	assert_string_equal(sample.process.parent_comm, "init");
	assert_string_equal(sample.process.cmdline, "/opt/my server/bin/webd -f --port=80");
	assert_string_equal(sample.process.exe, "/opt/my server/bin/webd (deleted)");
	assert_string_equal(sample.cgroup.path, "/");
	assert_null(sample.call.name);
	assert_null(sample.file.name);
	assert_null(sample.waker.comm);
	assert_int_equal(sample.file.fd, ABSENT);

	sample.thread.tid = 9000002;
	sample.cgroup.path = sample.process.cmdline = sample.process.exe = NULL;
	put_read_call(&sample, 0x100000005);
	sample.waker.tid = 9000004;
	lookup_fill(lookup, &sample, &hint, NEED_ALL, NOW);
	assert_string_equal(sample.cgroup.path, "/system.slice/web.service");
	assert_string_equal(sample.call.name, "read");
	assert_int_equal(sample.file.fd, 5);
	assert_string_equal(sample.file.name, "socket:[4026]");
	assert_string_equal(sample.waker.comm, "kworker/u4:2-events_unbound");
	assert_ptr_equal(sample.process.exe, name_transient_string(sample.process.exe));
	lookup_free(lookup);
}

static void fixture_kernel_thread(void **state)
{
	struct lookup *lookup = lookup_new(ROOT);
	struct lookup_hint hint = {0};
	struct sample sample = *sample_absent();

	sample.thread.tid = sample.thread.pid = 9000004;
	sample.thread.start_ns = 1;
	sample.thread.kthread = 1;
	put_read_call(&sample, 0); /* the call that /proc shows for a kernel thread */
	sample.waker.tid = 0;
	lookup_fill(lookup, &sample, &hint, NEED_ALL, NOW);
	assert_int_equal(sample.process.ppid, 2);
	assert_null(sample.process.cmdline);
	assert_null(sample.process.exe);
	assert_null(sample.call.name);
	assert_int_equal(sample.file.fd, ABSENT);
	assert_string_equal(sample.cgroup.path, "/");
	assert_string_equal(sample.waker.comm, "swapper");
	lookup_free(lookup);
}

static void only_what_is_needed_and_absent(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/one");
	fake_proc_put_stat(&scene->proc, 7, 7, 5);
	put_read_call(&scene->requested, 3);
	scene->requested.waker.tid = 0;
	sample = fill(scene, 0, NOW);
	assert_memory_equal(&sample, &scene->requested, sizeof(sample));
	scene->requested.process.exe = name_of_string("known");
	scene->requested.process.ppid = 3;
	sample = fill(scene, NEED_EXE | NEED_PPID | NEED_CGROUP, NOW);
	assert_string_equal(sample.process.exe, "known");
	assert_int_equal(sample.process.ppid, 3);
	assert_string_equal(sample.cgroup.path, "/a");
	assert_null(sample.call.name);
	assert_null(sample.thread.user);
	assert_null(sample.waker.comm);
}

static void gone_thread_stays_absent(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	put_read_call(&scene->requested, 3);
	scene->requested.waker.tid = 8;
	sample = fill(scene, NEED_ALL, NOW);
	assert_null(sample.thread.user);
	assert_null(sample.process.cmdline);
	assert_null(sample.process.exe);
	assert_null(sample.cgroup.path);
	assert_null(sample.file.name);
	assert_null(sample.waker.comm);
	assert_int_equal(sample.process.ppid, ABSENT);
	assert_int_equal(sample.thread.uid, ABSENT);
	assert_int_equal(sample.file.fd, 3);
	assert_string_equal(sample.call.name, "read");
}

static void gone_thread_keeps_its_uid(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	scene->requested.thread.uid = 0;
	sample = fill(scene, NEED_USER, NOW);
	assert_int_equal(sample.thread.uid, 0);
	assert_string_equal(sample.thread.user, "root");
}

static void stale_uid_is_corrected(void **state)
{
	struct scene *scene = *state;
	struct passwd *own = getpwuid(geteuid());
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "comm", "one\n");
	scene->requested.thread.uid = 4011222333; /* a switch ago */
	sample = fill(scene, NEED_USER, NOW);
	assert_int_equal(sample.thread.uid, geteuid());
	if (own)
		assert_string_equal(sample.thread.user, own->pw_name);
}

static void reused_tid_shows_nothing_old(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/old\n");
	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/old");
	fake_proc_put(&scene->proc, 7, 7, "cmdline", "old");
	fake_proc_put_stat(&scene->proc, 7, 7, 5);
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[1]");
	put_read_call(&scene->requested, 3);
	sample = fill(scene, NEED_ALL, NOW);
	assert_string_equal(sample.cgroup.path, "/old");
	assert_string_equal(sample.process.cmdline, "old");
	assert_string_equal(sample.file.name, "pipe:[1]");

	/* a thread with this tid, comm and switch sequence, and nothing to read */
	fake_proc_drop(&scene->proc, 7, 7);
	scene->requested.thread.start_ns = clock_boot_ns();
	sample = fill(scene, NEED_ALL, NOW + 1);
	assert_null(sample.cgroup.path);
	assert_null(sample.process.exe);
	assert_null(sample.process.cmdline);
	assert_null(sample.file.name);
	assert_null(sample.thread.user);
	assert_int_equal(sample.process.ppid, ABSENT);
}

static void thread_of_a_reused_pid(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/old");
	assert_string_equal(fill(scene, NEED_EXE, NOW).process.exe, "/bin/old");
	/* a thread not seen before, of a process that got the pid: younger than what was read */
	fake_proc_put(&scene->proc, 7, 8, "exe", "/bin/new");
	scene->requested.thread.tid = 8;
	scene->requested.thread.start_ns = clock_boot_ns();
	sample = fill(scene, NEED_EXE, NOW + 1);
	assert_string_equal(sample.process.exe, "/bin/new");
	/* a thread of unknown age takes nothing over either */
	fake_proc_put(&scene->proc, 7, 9, "exe", "/bin/third");
	scene->requested.thread.tid = 9;
	scene->requested.thread.start_ns = ABSENT;
	assert_string_equal(fill(scene, NEED_EXE, NOW + 2).process.exe, "/bin/third");
}

static void process_is_read_once_for_its_threads(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/one");
	assert_string_equal(fill(scene, NEED_EXE, NOW).process.exe, "/bin/one");
	scene->requested.thread.tid = 8; /* the thread has no files to read */
	assert_string_equal(fill(scene, NEED_EXE, NOW).process.exe, "/bin/one");
}

static void ended_thread_hides_nothing_from_others(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 8, "exe", "/bin/one");
	assert_null(fill(scene, NEED_EXE, NOW).process.exe);
	scene->requested.thread.tid = 8;
	assert_string_equal(fill(scene, NEED_EXE, NOW).process.exe, "/bin/one");
}

static void exec_is_seen_at_once(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/one");
	fake_proc_put(&scene->proc, 7, 7, "cmdline", "one");
	fill(scene, NEED_EXE | NEED_CMDLINE, NOW);
	fake_proc_put(&scene->proc, 7, 7, "exe", "/bin/two");
	fake_proc_put(&scene->proc, 7, 7, "cmdline", "two");
	assert_string_equal(fill(scene, NEED_EXE, NOW + 1).process.exe, "/bin/one");
	scene->requested.thread.comm = name_of_string("two");
	sample = fill(scene, NEED_EXE | NEED_CMDLINE, NOW + 2);
	assert_string_equal(sample.process.exe, "/bin/two");
	assert_string_equal(sample.process.cmdline, "two");
}

static void sleeper_is_left_alone(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	fill(scene, NEED_CGROUP, NOW);
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/b\n");
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + LOOKUP_STILL_NS - 1).cgroup.path, "/a");
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 2 * LOOKUP_STILL_NS).cgroup.path, "/b");
}

static void sleeper_stays_with_its_leader(void **state)
{
	struct scene *scene = *state;
	int64_t now_ns = NOW;

	scene->requested.thread.tid = 8;
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	fake_proc_put(&scene->proc, 7, 8, "cgroup", "0::/a\n");
	assert_string_equal(fill(scene, NEED_CGROUP, now_ns).cgroup.path, "/a");
	now_ns += 2 * LOOKUP_STILL_NS;
	/* the thread alone is moved, which is seen late; then the whole process, which is seen */
	fake_proc_put(&scene->proc, 7, 8, "cgroup", "0::/b\n");
	assert_string_equal(fill(scene, NEED_CGROUP, now_ns).cgroup.path, "/a");
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/b\n");
	now_ns += 2 * LOOKUP_STILL_NS;
	assert_string_equal(fill(scene, NEED_CGROUP, now_ns).cgroup.path, "/b");
	fake_proc_put(&scene->proc, 7, 8, "cgroup", "0::/c\n");
	now_ns += 20 * LOOKUP_STILL_NS;
	assert_string_equal(fill(scene, NEED_CGROUP, now_ns).cgroup.path, "/c");
	/* a thread that ran is read itself */
	fake_proc_put(&scene->proc, 7, 8, "cgroup", "0::/d\n");
	scene->hint.sequence = 2;
	assert_string_equal(fill(scene, NEED_CGROUP, now_ns + LOOKUP_RAN_NS).cgroup.path, "/d");
}

static void uid_of_a_sleeper_is_kept(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "comm", "one\n");
	assert_int_equal(fill(scene, NEED_USER, NOW).thread.uid, geteuid());
	/* no file to read it from again, until the thread could have changed it */
	fake_proc_drop(&scene->proc, 7, 7);
	assert_int_equal(fill(scene, NEED_USER, NOW + 2 * LOOKUP_STILL_NS).thread.uid, geteuid());
	scene->hint.sequence = 2;
	assert_int_equal(fill(scene, NEED_USER, NOW + 3 * LOOKUP_STILL_NS).thread.uid, ABSENT);
}

static void thread_that_ran_is_read_again(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	fill(scene, NEED_CGROUP, NOW);
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/b\n");
	scene->hint.sequence = 2;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + LOOKUP_RAN_NS - 1).cgroup.path, "/a");
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + LOOKUP_RAN_NS).cgroup.path, "/b");
	/* on a CPU it changes without a switch, also between that sample and the next */
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/c\n");
	scene->requested.now.state = STATE_ON;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 2 * LOOKUP_RAN_NS).cgroup.path, "/c");
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/d\n");
	scene->requested.now.state = STATE_SLEEP;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 3 * LOOKUP_RAN_NS).cgroup.path, "/d");
}

static uint64_t task_groups;

static bool task_get(int64_t tid, int64_t *uid, uint64_t *groups)
{
	*uid = 4242;
	*groups = task_groups;
	return tid == 7;
}

static void cgroup_is_read_again_when_moved(void **state)
{
	struct scene *scene = *state;

	lookup_set_task_reader(scene->lookup, task_get);
	task_groups = 1;
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	assert_int_equal(fill(scene, NEED_CGROUP | NEED_USER, NOW).thread.uid, 4242);
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/b\n");
	scene->hint.sequence = 2;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + LOOKUP_RAN_NS).cgroup.path, "/a");
	task_groups = 2;
	scene->hint.sequence = 3;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 2 * LOOKUP_RAN_NS).cgroup.path, "/b");
	/* another group may have the number of one that is gone */
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/c\n");
	scene->hint.sequence = 4;
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 3 * LOOKUP_STILL_NS).cgroup.path, "/c");
}

static void file_of_one_episode(void **state)
{
	struct scene *scene = *state;

	put_read_call(&scene->requested, 3);
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[1]");
	fake_proc_put(&scene->proc, 7, 7, "fd/4", "/var/log/x (deleted)");
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW).file.name, "pipe:[1]");
	/* another thread put another file there: ours still waits for the first */
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[2]");
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 1).file.name, "pipe:[1]");
	scene->hint.sequence = 2;
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 2).file.name, "pipe:[2]");
	scene->requested.call.arg[0] = 4;
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 3).file.name,
			    "/var/log/x (deleted)");
	scene->requested.call.arg[0] = 5;
	assert_null(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 4).file.name);
	scene->requested.call.nr = SYS_futex;
	assert_int_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 5).file.fd, ABSENT);
}

static void file_on_cpu_is_read_each_time(void **state)
{
	struct scene *scene = *state;

	put_read_call(&scene->requested, 3);
	scene->requested.now.state = STATE_ON;
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[1]");
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW).file.name, "pipe:[1]");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[2]");
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 1).file.name, "pipe:[2]");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[3]");
	scene->requested.now.state = STATE_SLEEP;
	assert_string_equal(fill(scene, NEED_SYSCALL | NEED_FILE, NOW + 2).file.name, "pipe:[3]");
}

static void waker_process(void **state)
{
	struct lookup *lookup;
	struct scene *scene = *state;
	char root[128];

	fake_proc_put(&scene->proc, 7, 8, "status", "Tgid:\t7\nUid:\t1\t2\t3\t4\n");
	snprintf(root, sizeof(root), "%s/7/task", scene->proc.root);
	lookup = lookup_new(root);
	for (int64_t tid = 7; tid <= 8; tid++) {
		struct sample sample = scene->requested;

		sample.waker.tid = tid;
		lookup_fill(lookup, &sample, &scene->hint, NEED_WAKER_PID, NOW);
		assert_int_equal(sample.waker.pid, tid == 8 ? 7 : ABSENT);
		assert_null(sample.waker.comm);
	}
	scene->requested.waker.tid = 0;
	lookup_fill(lookup, &scene->requested, &scene->hint, NEED_WAKER_PID | NEED_WAKER_COMM, NOW);
	assert_int_equal(scene->requested.waker.pid, 0);
	assert_string_equal(scene->requested.waker.comm, "swapper");
	lookup_free(lookup);
}

static void pid_namespace(void **state)
{
	struct scene *scene = *state;
	struct sample sample = fill(scene, NEED_PID_NS, NOW);

	assert_int_equal(sample.namespace.pid_ns, ABSENT);
	assert_int_equal(sample.namespace.ns_pid, ABSENT);
	assert_int_equal(sample.namespace.ns_tid, ABSENT);
	fake_proc_put(&scene->proc, (int)scene->requested.thread.pid,
		      (int)scene->requested.thread.tid, "ns/pid", "pid:[4026532000]");
	fake_proc_put(&scene->proc, (int)scene->requested.thread.pid,
		      (int)scene->requested.thread.tid, "status", "NStgid:\t7\t1\nNSpid:\t8\t2\n");
	sample = fill(scene, NEED_PID_NS, NOW + 3 * LOOKUP_STILL_NS);
	assert_int_equal(sample.namespace.pid_ns, 4026532000ll);
	assert_int_equal(sample.namespace.ns_pid, 1);
	assert_int_equal(sample.namespace.ns_tid, 2);
}

static void waker_name_ages(void **state)
{
	struct lookup *lookup;
	struct scene *scene = *state;
	char root[128];

	/* ROOT/TID/comm: the task folder of the fake process serves as a root */
	fake_proc_put(&scene->proc, 7, 8, "comm", "waker\n\n");
	snprintf(root, sizeof(root), "%s/7/task", scene->proc.root);
	lookup = lookup_new(root);
	scene->requested.waker.tid = 8;
	for (int64_t age_ns = 0; age_ns <= LOOKUP_RAN_NS; age_ns += LOOKUP_RAN_NS / 2) {
		struct sample sample = scene->requested;

		lookup_fill(lookup, &sample, &scene->hint, NEED_WAKER_COMM, NOW + age_ns);
		assert_string_equal(sample.waker.comm, age_ns < LOOKUP_RAN_NS ? "waker\n" : "new");
		fake_proc_put(&scene->proc, 7, 8, "comm", "new\n");
	}
	lookup_free(lookup);
}

static void sweep_forgets(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/a\n");
	fill(scene, NEED_CGROUP, NOW);
	fake_proc_put(&scene->proc, 7, 7, "cgroup", "0::/b\n");
	lookup_sweep(scene->lookup, NOW + NS_PER_SECOND);
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + NS_PER_SECOND).cgroup.path, "/a");
	lookup_sweep(scene->lookup, NOW + 9 * NS_PER_SECOND);
	assert_string_equal(fill(scene, NEED_CGROUP, NOW + 9 * NS_PER_SECOND).cgroup.path, "/b");
}

static void long_command_line_is_cut(void **state)
{
	struct scene *scene = *state;
	char cmdline[6000];

	memset(cmdline, 'x', sizeof(cmdline) - 1);
	cmdline[sizeof(cmdline) - 1] = '\0';
	fake_proc_put(&scene->proc, 7, 7, "cmdline", cmdline);
	assert_int_equal(strlen(fill(scene, NEED_CMDLINE, NOW).process.cmdline), 4096);
}

/* A thread of this test, asleep in read(2) on a pipe, as the kernel shows it. */
static void own_sleeping_thread(void **state)
{
	struct lookup *lookup;
	struct lookup_hint hint = {0};
	struct sample sample = *sample_absent();
	struct sleeper sleeper;
	struct proc_syscall call;
	char exe[4096] = "";

	if (sleeper_is_emulated())
		skip();
	lookup = lookup_new("/proc");
	sleeper_start(&sleeper, geteuid() ? (uid_t)-1 : 4242);
	assert_int_equal(proc_syscall_read("/proc", getpid(), sleeper.tid, &call), 0);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	sample.thread.pid = getpid();
	sample.thread.tid = sleeper.tid;
	sample.thread.start_ns = clock_boot_ns();
	sample.thread.kthread = 0;
	sample.now.state = STATE_SLEEP;
	sample.call.nr = call.nr;
	sample.waker.tid = getpid();
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		sample.call.arg[i] = call.arg[i];
	lookup_fill(lookup, &sample, &hint, NEED_ALL, NOW);
	assert_string_equal(sample.call.name, "read");
	assert_int_equal(sample.file.fd, sleeper.ends[0]);
	assert_memory_equal(sample.file.name, "pipe:[", 6);
	assert_string_equal(sample.process.exe, exe);
	assert_non_null(strstr(sample.process.cmdline, "test_lookup"));
	assert_string_equal(sample.waker.comm, "test_lookup");
	assert_int_equal(sample.process.ppid, getppid());
	assert_int_equal(sample.cgroup.path[0], '/');
	assert_int_equal(sample.thread.uid, geteuid() ? geteuid() : 4242);
	sleeper_stop(&sleeper);
	lookup_free(lookup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_are_in_order),
		cmocka_unit_test(fixture_thread),
		cmocka_unit_test(fixture_kernel_thread),
		cmocka_unit_test(own_sleeping_thread),
		scene_test(only_what_is_needed_and_absent),
		scene_test(gone_thread_stays_absent),
		scene_test(gone_thread_keeps_its_uid),
		scene_test(stale_uid_is_corrected),
		scene_test(reused_tid_shows_nothing_old),
		scene_test(thread_of_a_reused_pid),
		scene_test(process_is_read_once_for_its_threads),
		scene_test(ended_thread_hides_nothing_from_others),
		scene_test(exec_is_seen_at_once),
		scene_test(sleeper_is_left_alone),
		scene_test(sleeper_stays_with_its_leader),
		scene_test(uid_of_a_sleeper_is_kept),
		scene_test(thread_that_ran_is_read_again),
		scene_test(cgroup_is_read_again_when_moved),
		scene_test(file_of_one_episode),
		scene_test(file_on_cpu_is_read_each_time),
		scene_test(waker_name_ages),
		scene_test(waker_process),
		scene_test(each_need_alone),
		scene_test(pid_namespace),
		scene_test(sweep_forgets),
		scene_test(long_command_line_is_cut),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
