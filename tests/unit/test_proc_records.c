/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of threads in R by what schedstat has gained, and records of this process's own threads.
 */
#include "unit.h"
#include "base/clock.h"
#include "live/threads/live_sample.h"
#include "live/threads/proc_records.h"
#include "proc/proc.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS NS_PER_MS

static bool is_on(int64_t cpu_ns, int64_t runq_ns, uint64_t arrivals, bool was_on)
{
	const struct proc_gained gained = {100 * MS, cpu_ns, runq_ns, arrivals, was_on, 20 * MS};
	double carry = 0, ahead = 0;

	return proc_gained_is_on(&gained, &carry, &ahead);
}

static void certain_states(void **state)
{
	/* it has not come on a CPU: it waits, for the end of a time slice or since its wake-up */
	assert_false(is_on(0, 0, 0, false));
	assert_false(is_on(0, 0, 0, true));
	/* it came, and has not left: time is added when it does */
	assert_true(is_on(0, 3 * MS, 1, false));
	/* it ran all the time, or until it was displaced */
	assert_true(is_on(99 * MS, 0, 0, true));
	assert_false(is_on(10 * MS, 0, 0, true));
	/* it never waited */
	assert_true(is_on(20 * MS, 0, 40, false));
	/* it waited nearly all the time */
	assert_false(is_on(MS, 99 * MS, 2, false));
}

/* Shares of samples are those of the sums. */
static void shares(void **state)
{
	for (int part = 0; part <= 10; part++) {
		const struct proc_gained gained = {
			100 * MS, (10 - part) * 10 * MS + 1, part * 10 * MS, 20, false, 20 * MS};
		double carry = 0;
		int waiting = 0;

		for (int i = 0; i < 1000; i++) {
			double ahead = 0;

			waiting += !proc_gained_is_on(&gained, &carry, &ahead);
		}
		assert_in_range(waiting, part * 100 - (part > 0), part * 100 + 1);
	}
}

/* Of threads that share a CPU one is on it in each walk, each as often as the others. */
static void one_on_a_cpu(void **state)
{
	for (int count = 2; count <= 5; count++) {
		const struct proc_gained gained = {
			100 * MS, 100 * MS / count, 100 * MS * (count - 1) / count, 20,
			false,	  20 * MS};
		double carry[5] = {0.4, -0.3, 0.1, -0.2, 0.3};
		int running[5] = {0};

		for (int walk = 0; walk < 1000; walk++) {
			double ahead = 0;
			int of_walk = 0;

			for (int i = 0; i < count; i++) {
				bool on = proc_gained_is_on(&gained, &carry[i], &ahead);

				running[i] += on;
				of_walk += on;
			}
			if (walk > 10)
				assert_int_equal(of_walk, 1);
		}
		for (int i = 0; i < count; i++)
			assert_in_range(running[i], 1000 / count - 5, 1000 / count + 5);
	}
}

/* A wait that ends now was R in earlier scans, too: it is not more than the time between two. */
static void long_wait_ends(void **state)
{
	const struct proc_gained gained = {100 * MS, 50 * MS, 5000 * MS, 1, false, 20 * MS};
	double carry = -0.25, ahead = 0;

	assert_true(proc_gained_is_on(&gained, &carry, &ahead));
	assert_true(carry > 0.24 && carry < 0.26);
}

static void sums_parsed(void **state)
{
	static const char *const bad[] = {"",	     "1 2\n",	   "1 2 3",
					  "1 2 x\n", "-1 2 3 4\n", "1 2 3 4\n"};
	struct proc_schedstat sums;
	uint64_t voluntary, involuntary;

	assert_int_equal(proc_schedstat_parse("123 45 6\n", &sums), 0);
	assert_int_equal(sums.cpu_ns, 123);
	assert_int_equal(sums.runq_ns, 45);
	assert_int_equal(sums.arrivals, 6);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!proc_schedstat_parse(bad[i], &sums))
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(proc_switches_parse("Name:\tx\nvoluntary_ctxt_switches:\t7\n"
					     "nonvoluntary_ctxt_switches:\t8\n",
					     &voluntary, &involuntary),
			 0);
	assert_int_equal(voluntary, 7);
	assert_int_equal(involuntary, 8);
	assert_int_equal(proc_switches_parse("Name:\tx\n", &voluntary, &involuntary), -EINVAL);
}

/* --- records of a thread of this process */

struct sleeper {
	pthread_t thread;
	int pipe[2];
	uint32_t tid;
};

static void *sleep_run(void *of)
{
	struct sleeper *sleeper = of;
	char byte;

	__atomic_store_n(&sleeper->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (read(sleeper->pipe[0], &byte, 1) == 1 && byte != 'q')
		;
	return NULL;
}

static void sleeper_begin(struct sleeper *sleeper)
{
	struct proc_stat stat = {.state = 0};

	assert_int_equal(pipe(sleeper->pipe), 0);
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_run, sleeper), 0);
	while (!__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE) ||
	       proc_stat_read("/proc", getpid(), sleeper->tid, &stat) || stat.state != 'S')
		usleep(1000);
}

struct scene {
	struct thread_table table;
	struct proc_records records;
	struct sleeper sleeper;
	uint32_t changed; /* keys of the sleeper that the last walk gave */
	uint32_t key;
};

static bool others_pass(void *to, int64_t pid, int64_t tid)
{
	const struct scene *scene = to;

	return pid != getpid() || tid != scene->sleeper.tid;
}

static void changed_count(void *to, uint32_t key)
{
	struct scene *scene = to;

	scene->changed++;
	scene->key = key;
}

static void step_nothing(void *to)
{
	(void)to;
}

static uint32_t scene_walk(struct scene *scene)
{
	const struct proc_visitor visitor = {others_pass, changed_count, step_nothing, scene};

	scene->changed = 0;
	assert_int_equal(proc_records_walk(&scene->records, clock_monotonic_ns(), &visitor), 0);
	return scene->changed;
}

/* A record changes if and only if its thread has run, and nothing that was read of it before then
 * counts as read of the same sleep. */
static void records_of_sleeper(void **state)
{
	static struct scene scene;
	struct thread_state record, again;
	uint32_t key;
	bool ambiguous;

	if (proc_records_lack())
		skip();
	sleeper_begin(&scene.sleeper);
	assert_int_equal(thread_table_init_own(&scene.table, 1000, proc_record_lasts), 0);
	scene.records.table = &scene.table;
	assert_int_equal(scene_walk(&scene), 1);
	assert_int_equal(scene_walk(&scene), 0);
	assert_int_equal(thread_table_key(&scene.table, scene.sleeper.tid, &key), 0);
	assert_int_equal(key, scene.key);
	assert_int_equal(thread_table_get_whole(&scene.table, key, &record), 0);
	assert_int_equal(record.identity.tgid, getpid());
	assert_int_equal(record.identity.tid, scene.sleeper.tid);
	assert_int_equal(record_state(&record,
				      &(struct live_scan_time){.now_ns = clock_monotonic_ns()},
				      &ambiguous),
			 STATE_SLEEP);
	assert_true(record_settled(&record));
	assert_true(thread_table_is_asleep(&scene.table, key, scene.sleeper.tid,
					   record.sched.sequence_done));
	/* it runs and sleeps again: no walk has seen that yet */
	assert_int_equal(write(scene.sleeper.pipe[1], "x", 1), 1);
	usleep(50000);
	assert_false(thread_table_is_asleep(&scene.table, key, scene.sleeper.tid,
					    record.sched.sequence_done));
	assert_int_equal(scene_walk(&scene), 1);
	assert_int_equal(thread_table_get_whole(&scene.table, key, &again), 0);
	assert_true(again.sched.sequence_done > record.sched.sequence_done);
	assert_true(again.sched.cpu_ns > record.sched.cpu_ns);
	assert_int_equal(record_start_ns(&again), record_start_ns(&record));
	/* it ends */
	assert_int_equal(write(scene.sleeper.pipe[1], "q", 1), 1);
	pthread_join(scene.sleeper.thread, NULL);
	assert_int_equal(scene_walk(&scene), 1);
	assert_int_equal(thread_table_key(&scene.table, scene.sleeper.tid, &key), -ENOENT);
	proc_records_done(&scene.records);
	thread_table_done(&scene.table);
	close(scene.sleeper.pipe[0]);
	close(scene.sleeper.pipe[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certain_states), cmocka_unit_test(shares),
		cmocka_unit_test(one_on_a_cpu),	  cmocka_unit_test(long_wait_ends),
		cmocka_unit_test(sums_parsed),	  cmocka_unit_test(records_of_sleeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
