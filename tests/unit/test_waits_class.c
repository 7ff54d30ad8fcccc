/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Classes of waits, as far as facts of the wait determine them. */
#include "unit.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "lookup_scene.h"

static int64_t clock_ns, clock_step_ns; /* present time, and the time that each reading takes */

/* Replaces base/clock.c's function (CMakeLists.txt), which goes on while others have the CPU. */
int64_t __wrap_clock_monotonic_ns(void);

int64_t __wrap_clock_monotonic_ns(void)
{
	return clock_ns += clock_step_ns;
}

static const char *class_soon(struct scene *scene, int64_t after_ns)
{
	struct sample sample = scene->requested;

	scene->hint.sequence++;
	scene->now_ns += after_ns;
	lookup_fill(scene->lookup, &sample, &scene->hint, NEED_WAIT_CLASS, scene->now_ns);
	return sample.wait.why;
}

static const char *class_of(struct scene *scene)
{
	return class_soon(scene, 3 * NS_PER_SECOND);
}

/* A descriptor is looked at once a second. */
static void class_as_before(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	fake_proc_put(&scene->proc, 7, 7, "fd/4", "/mnt/far/file");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(class_of(scene), "pipe");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "/dev/pts/0");
	assert_string_equal(class_soon(scene, TICK_NS), "pipe");
	call_put(scene, SYS_read, 4, 0, 0);
	assert_string_equal(class_soon(scene, TICK_NS), "file");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(class_soon(scene, TICK_NS), "device");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	assert_string_equal(class_soon(scene, NS_PER_SECOND), "pipe");
}

static void class_by_call_and_facts(void **state)
{
	const uint32_t held[4] = {2, 0, 8, 1}, free[4] = {0}, word[4] = {8};
	struct pollfd polled[2] = {{.fd = 3}, {.fd = 4}};
	struct scene *scene = *state;

	call_put(scene, SYS_clock_nanosleep, 0, 0, 0);
	assert_string_equal(class_of(scene), "sleep");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, held, sizeof(held));
	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_PRIVATE, 2);
	assert_string_equal(class_of(scene), "lock");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, free, sizeof(free));
	assert_string_equal(class_of(scene), "futex");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, word, sizeof(word));
	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_BITSET, 8);
	assert_string_equal(class_of(scene), "child");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(class_of(scene), "other"); /* no such descriptor */
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "/mnt/far/file");
	assert_string_equal(class_of(scene), "file");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "/dev/pts/0");
	assert_string_equal(class_of(scene), "device");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	assert_string_equal(class_of(scene), "pipe");
	/* open(2) of a file, of a FIFO */
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, "/srv/x", sizeof("/srv/x"));
	call_put(scene, SYS_openat, 3, PAGE, 0);
	assert_string_equal(class_of(scene), "file");
	fake_proc_put(&scene->proc, 7, 7, "wchan", "wait_for_partner");
	assert_string_equal(class_of(scene), "pipe");
	fake_proc_put(&scene->proc, 7, 7, "wchan", "do_sys_poll");
	call_put(scene, SYS_write, 3, 0, 0);
	assert_string_equal(class_of(scene), "write");
	/* poll of one descriptor is like a read of it */
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, polled, sizeof(polled));
	call_put(scene, SYS_ppoll, PAGE, 1, 0);
	assert_string_equal(class_of(scene), "pipe");
	call_put(scene, SYS_ppoll, PAGE, 2, 0);
	assert_string_equal(class_of(scene), "poll");
	scene->requested.now.state = STATE_DISK;
	assert_null(class_of(scene));
	scene->requested.now.state = STATE_SLEEP;
	scene->requested.call.nr = ABSENT;
	assert_null(class_of(scene));
}

static const char *class_now(struct scene *scene, int64_t tid)
{
	struct sample sample = scene->requested;

	sample.thread.tid = tid;
	scene->hint.sequence++;
	lookup_fill(scene->lookup, &sample, &scene->hint, NEED_WAIT_CLASS, scene->now_ns);
	return sample.wait.why;
}

/* Threads of a process that wait for one lock: one of them is looked up, anew in each scan; unless
 * it holds the lock itself, or they may have other descriptors. */
static void class_of_peers(void **state)
{
	const uint32_t held[4] = {2, 0, 7, 1}, own[4] = {2, 0, (uint32_t)getpid(), 1},
		       free[4] = {0};
	struct scene *scene = *state;

	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_PRIVATE, 2);
	scene->requested.thread.pid = getpid(); /* kcmp(2) is called for its threads */
	fake_proc_put(&scene->proc, getpid(), getpid(), "status", "Name:\tone\nNSpid:\t9\n");
	fake_proc_put_page(&scene->proc, getpid(), getpid(), PAGE, held, sizeof(held));
	fake_proc_put(&scene->proc, getpid(), 7, "comm", "x\n");
	assert_string_equal(class_now(scene, getpid()), "lock");
	fake_proc_put_page(&scene->proc, getpid(), getpid(), PAGE, free, sizeof(free));
	scene->requested.thread.start_ns = 2; /* no episode of its own */
	assert_string_equal(class_now(scene, getpid()), "lock");
	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_PRIVATE, 3);
	assert_string_equal(class_now(scene, getpid()), "futex");
	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_PRIVATE, 2);
	scene->now_ns += TICK_NS;
	scene->requested.thread.start_ns = 3;
	assert_string_equal(class_now(scene, getpid()), "futex");
	/* the thread holds the lock itself */
	scene->now_ns += TICK_NS;
	scene->requested.thread.start_ns = 4;
	fake_proc_put_page(&scene->proc, getpid(), getpid(), PAGE, own, sizeof(own));
	assert_string_equal(class_now(scene, getpid()), "lock");
	scene->now_ns += TICK_NS;
	scene->requested.thread.start_ns = 5;
	fake_proc_put_page(&scene->proc, getpid(), getpid(), PAGE, held, sizeof(held));
	assert_string_equal(class_now(scene, getpid()), "lock");
	/* no such thread */
	scene->requested.thread.start_ns = 6;
	fake_proc_put(&scene->proc, getpid(), 9999999, "fd/3", "/mnt/far/file");
	fake_proc_put(&scene->proc, getpid(), getpid(), "fd/3", "pipe:[11]");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(class_now(scene, getpid()), "pipe");
	assert_string_equal(class_now(scene, 9999999), "file");
}

/* A scan has limited time: a thread that comes when it is used up is looked up in a later scan. */
static void class_in_time(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	fake_proc_put(&scene->proc, 7, 8, "fd/4", "/dev/pts/0");
	call_put(scene, SYS_read, 3, 0, 0);
	clock_step_ns = NS_PER_SECOND;
	assert_string_equal(class_now(scene, 7), "pipe");
	call_put(scene, SYS_read, 4, 0, 0);
	assert_null(class_now(scene, 8));
	assert_true(waits_class_changes(lookup_waits(scene->lookup), 8));
	scene->now_ns += TICK_NS;
	assert_string_equal(class_now(scene, 8), "device");
	assert_false(waits_class_changes(lookup_waits(scene->lookup), 8));
	clock_step_ns = 0;
}

/* Requests that only wait until a descriptor is ready are not I/O; and that can change unseen. */
/* Entries of a ring of four: the requests that it took last are after the others. */
static void class_of_timeouts(struct scene *scene)
{
	static const struct {
		const char *fdinfo;
		uint8_t operations[4];
		const char *why;
	} rows[] = {
		{"SqMask:\t0x3\nCachedSqHead:\t6\nCachedCqTail:\t4\nPollList:\n", {11, 15}, "ring"},
		{"SqMask:\t0x3\nCachedSqHead:\t6\nCachedCqTail:\t4\n", {11, 11}, "ring"},
		{"SqMask:\t0x3\nCachedSqHead:\t6\nCachedCqTail:\t4\nPollList:\n", {11, 22}, "io"},
		{"SqMask:\t0x3\nCachedSqHead:\t6\nCachedCqTail:\t3\nPollList:\n  op=6, x=0\n",
		 {11, 11, 0, 6},
		 "ring"},
		{"SqMask:\t0x3\nCachedSqHead:\t9\nCachedCqTail:\t4\nPollList:\n",
		 {11, 11, 11, 11},
		 "io"},
	};
	uint8_t entries[4 * 64];

	fake_proc_put(&scene->proc, 7, 7, "maps",
		      "7000-8000 rw-s 00000000 00:0e 2 anon_inode:[io_uring]\n"
		      "20000-21000 rw-s 10000000 00:0e 2 anon_inode:[io_uring]\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(entries, 0, sizeof(entries));
		for (int entry = 0; entry < 4; entry++)
			entries[entry * 64] = rows[i].operations[entry];
		fake_proc_put_page(&scene->proc, 7, 7, 0x20000, entries, sizeof(entries));
		fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", rows[i].fdinfo);
		call_put(scene, SYS_io_uring_enter, 3, 0, 1);
		assert_string_equal(class_of(scene), rows[i].why);
	}
}

static void class_of_rings(void **state)
{
	static const struct {
		const char *fdinfo, *why;
	} rows[] = {
		{"CachedSqHead:\t2\nCachedCqTail:\t0\nPollList:\n", "io"},
		{"CachedSqHead:\t2\nCachedCqTail:\t0\nPollList:\n  op=6, task_works=0\n", "io"},
		{"CachedSqHead:\t2\nCachedCqTail:\t0\nPollList:\n  op=6, task_works=0\n"
		 "  op=13, task_works=0\n",
		 "ring"},
		{"CachedSqHead:\t2\nCachedCqTail:\t2\nPollList:\n", "ring"},
		{"SqThread:\t-1\n", "ring"},
	};
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:[io_uring]");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", rows[i].fdinfo);
		call_put(scene, SYS_io_uring_enter, 3, 0, 1);
		assert_string_equal(class_of(scene), rows[i].why);
		assert_true(waits_class_changes(lookup_waits(scene->lookup), 7));
	}
	class_of_timeouts(scene);
	call_put(scene, SYS_rt_sigtimedwait, 0, 0, 0);
	class_of(scene);
	assert_false(waits_class_changes(lookup_waits(scene->lookup), 7));
}

/* A server's ring: so many polls that not all of them may be read. */
static void class_of_large_rings(void **state)
{
	struct scene *scene = *state;
	struct text text = {0};

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:[io_uring]");
	for (int count = 1000; count <= 20000; count *= 20) {
		text_clear(&text);
		text_add_format(&text, "CachedSqHead:\t%d\nCachedCqTail:\t0\nPollList:\n", count);
		for (int i = 0; i < count; i++)
			text_add_string(&text, "  op=6, task_works=0\n");
		fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", text_string(&text));
		call_put(scene, SYS_io_uring_enter, 3, 0, 1);
		assert_string_equal(class_of(scene), "ring");
	}
	text_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		waits_test(class_as_before), waits_test(class_by_call_and_facts),
		waits_test(class_of_peers),  waits_test(class_in_time),
		waits_test(class_of_rings),  waits_test(class_of_large_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
