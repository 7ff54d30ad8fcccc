/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits from contents of /proc and of memory, be they valid, gone or hostile. */
#include "unit.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "live/resolve/lookup.h"
#include "lookup_scene.h"
#include "waits/net_namespaces.h"
#include "waits/last_wait.h"

#define NEEDS (NEED_SYSCALL | NEED_FILE | NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS | NEED_WCHAN)

static struct sample fill(struct scene *scene)
{
	struct sample sample = scene->requested;

	scene->now_ns += TICK_NS;
	lookup_fill(scene->lookup, &sample, &scene->hint, NEEDS, scene->now_ns);
	return sample;
}

static const char *futex_of(struct scene *scene, const uint32_t words[4], int64_t operation,
			    int64_t expected)
{
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, words, 4 * sizeof(*words));
	call_put(scene, SYS_futex, PAGE, operation, expected);
	return fill(scene).wait.on;
}

static void mutex_holders(void **state)
{
	const uint32_t held[4] = {2, 0, 8, 1}, own[4] = {2, 0, 7, 1},
		       robust[4] = {8 | FUTEX_WAITERS}, shared[4] = {21 | FUTEX_WAITERS};
	struct scene *scene = *state;

	assert_string_equal(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2),
			    "mutex 0x400000 held by 8 x");
	assert_int_equal(fill(scene).wait.pid, 7);
	assert_string_equal(futex_of(scene, robust, FUTEX_WAIT_PRIVATE, robust[0]),
			    "mutex 0x400000 held by 8 x");
	assert_string_equal(futex_of(scene, robust, FUTEX_LOCK_PI_PRIVATE, 0),
			    "mutex 0x400000 held by 8 x");
	assert_string_equal(futex_of(scene, own, FUTEX_WAIT_PRIVATE, 2),
			    "mutex 0x400000 held by 7");
	/* a lock in memory that processes share, by a thread that is not its process' first */
	fake_proc_put_process(&scene->proc, 21, "status", "Tgid:\t20\nUid:\t0\t0\t0\t0\n");
	fake_proc_put(&scene->proc, 20, 20, "comm", "y\n");
	assert_string_equal(futex_of(scene, shared, FUTEX_LOCK_PI, 0), "mutex 0x400000 held by 21");
	assert_int_equal(fill(scene).wait.pid, 20);
	/* of a process whose user is not known to be the waiter's */
	fake_proc_put_process(&scene->proc, 21, "status", "Tgid:\t22\nUid:\t0\t0\t0\t0\n");
	assert_string_equal(futex_of(scene, shared, FUTEX_LOCK_PI, 0),
			    "mutex 0x400000 likely held by 21");
	/* a process that has ended, and has not been waited for */
	fake_proc_put_process(&scene->proc, 21, "status", "Tgid:\t21\nUid:\t0\t0\t0\t0\n");
	fake_proc_put(&scene->proc, 21, 21, "stat",
		      "21 (y) Z 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		      "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
	assert_string_equal(futex_of(scene, shared, FUTEX_LOCK_PI, 0), "futex 0x400000");
	assert_int_equal(fill(scene).wait.pid, ABSENT);
}

/* Fills another thread that waits for the same lock in the same scan. */
static struct sample other_fill(struct scene *scene)
{
	struct sample sample = scene->requested;

	sample.thread.tid = 9;
	lookup_fill(scene->lookup, &sample, &scene->hint, NEEDS, scene->now_ns);
	return sample;
}

/* A lock's word is read once in a scan for all that wait for it, except for a thread that reads it
 * anew. */
static void mutex_of_many(void **state)
{
	const uint32_t held[4] = {2, 0, 8, 1}, passed_on[4] = {2, 0, 7, 1};
	struct scene *scene = *state;
	struct wait_facts facts;
	struct sample other;

	fake_proc_put(&scene->proc, 7, 9, "status", "Name:\ty\nNSpid:\t9\n");
	assert_non_null(strstr(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2), "held by 8 x"));
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, passed_on, sizeof(passed_on));
	other = other_fill(scene);
	assert_non_null(strstr(other.wait.on, "held by 8 x"));
	assert_true(waits_facts(lookup_waits(scene->lookup), &other, &scene->hint, true,
				scene->now_ns, &facts));
	assert_int_equal(facts.tid, 7);
	fake_proc_put_page(&scene->proc, 7, 9, PAGE, passed_on, sizeof(passed_on));
	scene->now_ns += TICK_NS;
	scene->hint.sequence++;
	assert_non_null(strstr(other_fill(scene).wait.on, "held by 7"));
}

/* Facts of a wait serve until it is read again, and for no other wait. */
static void facts_are_read_again(void **state)
{
	const uint32_t held[4] = {2, 0, 8, 1}, passed_on[4] = {2, 0, 21, 1};
	struct scene *scene = *state;
	int64_t until_ns, later_ns = scene->now_ns + 100 * NS_PER_SECOND;

	assert_true(waits_until(lookup_waits(scene->lookup), 7, 2, later_ns) > later_ns);
	assert_non_null(strstr(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2), "held by 8 x"));
	until_ns = waits_until(lookup_waits(scene->lookup), 7, scene->hint.sequence, later_ns);
	assert_true(until_ns >= scene->now_ns + NS_PER_SECOND);
	assert_true(until_ns <= scene->now_ns + 2 * NS_PER_SECOND);
	assert_in_range(
		waits_until(lookup_waits(scene->lookup), 7, scene->hint.sequence + 1, later_ns),
		later_ns + NS_PER_SECOND, later_ns + 2 * NS_PER_SECOND);
	fake_proc_put_process(&scene->proc, 21, "status", "Tgid:\t20\nUid:\t0\t0\t0\t0\n");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, passed_on, sizeof(passed_on));
	scene->now_ns = until_ns - 2 * TICK_NS;
	assert_non_null(strstr(fill(scene).wait.on, "held by 8 x"));
	assert_null(strstr(fill(scene).wait.on, "held by 8 x"));
	assert_in_range(waits_until(lookup_waits(scene->lookup), 7, scene->hint.sequence, later_ns),
			until_ns + 1, later_ns);
}

/* A sample is filled again with what its thread waits for, unless the wait is of another class. */
static void waits_are_renewed(void **state)
{
	const uint32_t held[4] = {2, 0, 8, 1}, passed_on[4] = {2, 0, 9, 1}, let_go[4] = {0};
	const uint64_t needs = NEEDS | NEED_WAIT_CLASS;
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 9, "status", "Name:\ty\nNSpid:\t9\n");
	fake_proc_put_process(&scene->proc, 9, "comm", "y\n");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, held, sizeof(held));
	call_put(scene, SYS_futex, PAGE, FUTEX_WAIT_PRIVATE, 2);
	sample = scene->requested;
	lookup_fill(scene->lookup, &sample, &scene->hint, needs, scene->now_ns);
	assert_string_equal(sample.wait.why, "lock");
	assert_false(waits_renew(lookup_waits(scene->lookup), &sample, &scene->hint,
				 NEED_WAIT_CLASS, scene->now_ns));
	for (int i = 0; i < 2; i++) {
		scene->now_ns += 2 * NS_PER_SECOND;
		assert_true(waits_renew(lookup_waits(scene->lookup), &sample, &scene->hint, needs,
					scene->now_ns));
		assert_true(waits_until(lookup_waits(scene->lookup), 7, scene->hint.sequence, 0) >
			    scene->now_ns);
		assert_string_equal(sample.wait.on, i ? "mutex 0x400000 held by 9 y"
						      : "mutex 0x400000 held by 8 x");
		fake_proc_put_page(&scene->proc, 7, 7, PAGE, i ? let_go : passed_on, sizeof(held));
	}
	scene->now_ns += 2 * NS_PER_SECOND;
	assert_false(waits_renew(lookup_waits(scene->lookup), &sample, &scene->hint, needs,
				 scene->now_ns));
}

static void mutex_lies(void **state)
{
	static const uint32_t lies[][4] = {
		{2, 1, 9, 1},	       /* no such thread, and a count */
		{2, 0, 0, 1},	       /* no owner */
		{2, 0, 8, 0},	       /* no users */
		{2, 0, 8, 0x7f12},     /* half of an address */
		{1, 0, 8, 1},	       /* without waiters: not what the thread waited for */
		{2, 0, 0xffffffff, 1}, /* no thread */
		{0xffffffff, ~0u, ~0u, ~0u},
	};
	const uint32_t musl[4] = {EBUSY | FUTEX_WAITERS};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		assert_string_equal(futex_of(scene, lies[i], FUTEX_WAIT_PRIVATE, 2),
				    "futex 0x400000");
	fake_proc_put(&scene->proc, 7, EBUSY, "comm", "sixteen\n");
	assert_string_equal(futex_of(scene, musl, FUTEX_WAIT_PRIVATE, musl[0]), "futex 0x400000");
	call_put(scene, SYS_futex, 0x700000, FUTEX_WAIT_PRIVATE, 2); /* not in memory */
	assert_string_equal(fill(scene).wait.on, "futex 0x700000");
	call_put(scene, SYS_futex, -1, FUTEX_WAIT_PRIVATE, 2);
	assert_string_equal(fill(scene).wait.on, "futex 0xffffffffffffffff");
	call_put(scene, SYS_futex, PAGE, FUTEX_WAKE_PRIVATE, 2);
	assert_null(fill(scene).wait.on);
}

static const char *mutex_of(struct scene *scene, const uint32_t words[10], int64_t operation)
{
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, words, 10 * sizeof(*words));
	call_put(scene, SYS_futex, PAGE, operation, words[0]);
	return fill(scene).wait.on;
}

/* Mutexes whose holder is no thread of the process: all of their words have to fit. */
static void lost_mutexes(void **state)
{
	static const uint32_t ended[10] = {2, 0, 9, 1}, recursive[10] = {2, 3, 9, 1, 1},
			      of_parent[10] = {2, 0, 30, 1},
			      robust[10] = {31 | FUTEX_WAITERS, 1, 31, 1, 0x90, 0, 1, 1, 1, 1},
			      lies[][10] = {{2, 0, 9, 1, 4},
					    {2, 0, 9, 1, 0x80},
					    {2, 0, 9, 1, 0, 0, 1},
					    {2, 0, 9, 1, 0, 0, 0, 0, 0, 1}};
	struct scene *scene = *state;

	assert_string_equal(mutex_of(scene, ended, FUTEX_WAIT_PRIVATE),
			    "mutex 0x400000 held by 9, a thread that has ended");
	assert_int_equal(fill(scene).wait.pid, ABSENT);
	assert_string_equal(mutex_of(scene, recursive, FUTEX_WAIT_PRIVATE),
			    "mutex 0x400000 held by 9, a thread that has ended");
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		assert_string_equal(mutex_of(scene, lies[i], FUTEX_WAIT_PRIVATE), "futex 0x400000");
	fake_proc_put_stat(&scene->proc, 7, 7, 20);
	fake_proc_put_process(&scene->proc, 30, "status", "Tgid:\t20\nUid:\t0\t0\t0\t0\n");
	assert_string_equal(mutex_of(scene, of_parent, FUTEX_WAIT_PRIVATE),
			    "mutex 0x400000 held by 30, a thread of the parent process");
	/* another process: its id is believed if it is of the same pid namespace */
	fake_proc_put_process(&scene->proc, 31, "status", "Tgid:\t31\nUid:\t0\t0\t0\t0\n");
	fake_proc_put(&scene->proc, 7, 7, "ns/pid", "pid:[1]");
	fake_proc_put_process(&scene->proc, 31, "ns/pid", "pid:[2]");
	assert_string_equal(mutex_of(scene, robust, FUTEX_WAIT), "futex 0x400000");
	fake_proc_put_process(&scene->proc, 31, "ns/pid", "pid:[1]");
	assert_string_equal(mutex_of(scene, robust, FUTEX_WAIT),
			    "mutex 0x400000 likely held by 31");
	assert_int_equal(fill(scene).wait.pid, 31);
}

static const char *rwlock_of(struct scene *scene, const uint32_t words[8], size_t at)
{
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, words, 8 * sizeof(*words));
	call_put(scene, SYS_futex, PAGE + sizeof(*words) * at, FUTEX_WAIT_PRIVATE, words[at]);
	return fill(scene).wait.on;
}

static void rwlock_holders(void **state)
{
	/* readers and state, writers, phase, writer, -, -, id, shared */
	static const uint32_t reader[8] = {1 << 3 | 3, 0, 3, 1, 0, 0, 8},
			      writer[8] = {3, 1, 1, 3, 0, 0, 8}, readers[8] = {2 << 3 | 2, 0, 2, 1},
			      next_writer[8] = {2 << 3 | 2, 1, 2, 3};
	struct scene *scene = *state;

	assert_string_equal(rwlock_of(scene, reader, 2), "rwlock 0x400000 held by 8 x");
	assert_int_equal(fill(scene).wait.pid, 7);
	assert_string_equal(rwlock_of(scene, writer, 3), "rwlock 0x400000 held by 8 x");
	assert_string_equal(rwlock_of(scene, readers, 2), "rwlock 0x400000 held by 2 readers");
	assert_int_equal(fill(scene).wait.pid, ABSENT);
	assert_string_equal(rwlock_of(scene, next_writer, 3), "rwlock 0x400000 held by 2 readers");
}

static void rwlock_lies(void **state)
{
	static const struct {
		uint32_t words[8];
		size_t at;
	} lies[] = {
		{{1 << 3 | 3, 0, 3, 1, 0, 0, 9}, 2},	/* no such thread */
		{{1 << 3 | 3, 0, 3, 1, 0, 0, 7}, 2},	/* the waiting one itself */
		{{1 << 3 | 3, 0, 3, 1, 0, 0, 0}, 2},	/* id 0: no thread */
		{{1 << 3 | 3, 0, 3, 1, 0, 0, 8, 1}, 2}, /* between processes */
		{{1 << 3 | 3, 0, 3, 0, 0, 0, 8}, 2},	/* no writer */
		{{1 << 3 | 1, 0, 3, 1, 0, 0, 8}, 2},
		{{1 << 3 | 3, 0, 2, 1, 0, 0, 8}, 2}, /* the other phase */
		{{2 << 3 | 2, 0, 3, 1}, 2},
		{{2, 0, 2, 1}, 2}, /* no readers */
		{{~0u - 1, 0, 2, 1}, 2},
		{{2 << 3 | 2, 0, 2, 1, 0, 0, 8}, 2},
	};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		assert_string_equal(rwlock_of(scene, lies[i].words, lies[i].at), "futex 0x400008");
}

/* Ids in a container's memory are those of its own pid namespace. */
static void mutex_in_a_container(void **state)
{
	const uint32_t held[4] = {2, 0, 42, 1};
	struct scene *scene = *state;
	char status[9000];

	fake_proc_put(&scene->proc, 7, 7, "status", "Name:\tone\nNStgid:\t7\t41\nNSpid:\t7\t41\n");
	fake_proc_put(&scene->proc, 7, 8, "status", "Name:\tx\nNStgid:\t7\t41\nNSpid:\t8\t42\n");
	assert_string_equal(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2),
			    "mutex 0x400000 held by 8 x");
	/* a status with many groups */
	snprintf(status, sizeof(status), "Groups:\t%08000d\nNStgid:\t7\t41\nNSpid:\t7\t41\n", 1);
	fake_proc_put(&scene->proc, 7, 7, "status", status);
	assert_string_equal(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2),
			    "mutex 0x400000 held by 8 x");
	fake_proc_put(&scene->proc, 7, 8, "status", "NStgid:\t7\t41\nNSpid:\t8\t43\n");
	assert_string_equal(futex_of(scene, held, FUTEX_WAIT_PRIVATE, 2),
			    "mutex 0x400000 held by 42, a thread that has ended");
}

static void join_of_a_thread(void **state)
{
	const uint32_t id[4] = {8};
	struct scene *scene = *state;

	assert_string_equal(futex_of(scene, id, FUTEX_WAIT_BITSET, 8), "end of thread 8 x");
	assert_string_equal(futex_of(scene, id, FUTEX_WAIT_BITSET_PRIVATE, 8), "futex 0x400000");
}

static void pipe_end_in_another_process(void **state)
{
	struct scene *scene = *state;
	struct sample sample;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	fake_proc_put_process(&scene->proc, 7, "fd/3", "pipe:[11]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "pos:\t0\nflags:\t00\n");
	fake_proc_put_process(&scene->proc, 8, "fd/1", "pipe:[11]");
	fake_proc_put_process(&scene->proc, 8, "status", "Name:\tx\nTgid:\t8\nUid:\t0\t0\t0\t0\n");
	call_put(scene, SYS_read, 3, 0, 0);
	sample = fill(scene);
	assert_string_equal(sample.wait.on, "pipe from 8 x");
	assert_string_equal(sample.file.type, "pipe");
	assert_string_equal(sample.file.name, "pipe:[11]");
	assert_int_equal(sample.wait.pid, 8);
	/* the mode of the own descriptor determines which end is looked for */
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "pos:\t0\nflags:\t01\n");
	call_put(scene, SYS_write, 3, 0, 0);
	assert_string_equal(fill(scene).wait.on, "pipe to 8 x");
}

/* /proc/6 exists for any thread: the process of the thread has the end. */
static void pipe_end_of_a_near_thread(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	fake_proc_put_process(&scene->proc, 6, "fd/4", "pipe:[11]");
	fake_proc_put_process(&scene->proc, 6, "status", "Name:\tx\nTgid:\t3\nUid:\t0\t0\t0\t0\n");
	fake_proc_put_process(&scene->proc, 3, "comm", "three\n");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(fill(scene).wait.on, "pipe from 3 three");
}

/* Two processes that have both ends wait for each other, whichever was looked up first. */
static void pipe_ends_shared(void **state)
{
	struct scene *scene = *state;

	for (int pid = 7; pid <= 9; pid += 2) {
		fake_proc_put(&scene->proc, pid, pid, "fd/3", "pipe:[11]");
		fake_proc_put_process(&scene->proc, pid, "fd/3", "pipe:[11]");
	}
	fake_proc_put_process(&scene->proc, 7, "comm", "seven\n");
	fake_proc_put_process(&scene->proc, 9, "comm", "nine\n");
	fake_proc_put_process(&scene->proc, 7, "status", "Tgid:\t7\nUid:\t0\t0\t0\t0\n");
	fake_proc_put_process(&scene->proc, 9, "status", "Tgid:\t9\nUid:\t0\t0\t0\t0\n");
	for (int turn = 0; turn < 2; turn++) {
		scene->requested.thread.tid = scene->requested.thread.pid = 7;
		call_put(scene, SYS_read, 3, 0, 0);
		assert_string_equal(fill(scene).wait.on, "pipe from 9 nine");
		scene->requested.thread.tid = scene->requested.thread.pid = 9;
		call_put(scene, SYS_read, 3, 0, 0);
		assert_string_equal(fill(scene).wait.on, "pipe from 7 seven");
	}
	/* the other process has closed it */
	fake_proc_put_process(&scene->proc, 7, "fd/3", "/dev/null");
	scene->now_ns += WAIT_LONGEST_NS;
	for (int scan = 0; scan < 10; scan++)
		fill(scene);
	assert_string_equal(fill(scene).wait.on, "pipe from 9 nine");
}

/* A holder far away, after 10 000 descriptors: found in a later scan, and no scan takes long. */
static void pipe_end_among_many(void **state)
{
	struct scene *scene = *state;
	struct sample sample;
	char name[32];
	int scans = 0;

	for (int fd = 3; fd < 10003; fd++) {
		snprintf(name, sizeof(name), "fd/%d", fd);
		fake_proc_put_process(&scene->proc, 5000, name,
				      fd == 10002 ? "pipe:[11]" : "/dev/null");
	}
	fake_proc_put_process(&scene->proc, 5000, "comm", "far\n");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	call_put(scene, SYS_read, 3, 0, 0);
	do {
		sample = fill(scene);
		scene->now_ns += TICK_NS;
	} while (sample.wait.pid == ABSENT && ++scans < 10000);
	assert_string_equal(sample.wait.on, "pipe from 5000 far");
}

/* A process that has the other end itself waits for itself, though a child with a close pid has
 * inherited it. Only descriptors with close numbers are looked at. */
static void pipe_end_of_its_own(void **state)
{
	struct scene *scene = *state;

	fake_proc_put_process(&scene->proc, 8, "fd/4", "pipe:[11]");
	fake_proc_put_process(&scene->proc, 8, "status", "Name:\tx\nTgid:\t8\nUid:\t0\t0\t0\t0\n");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "pos:\t0\nflags:\t00\n");
	fake_proc_put(&scene->proc, 7, 7, "fd/30", "pipe:[11]");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_int_equal(fill(scene).wait.pid, 8);
	fake_proc_put(&scene->proc, 7, 7, "fd/0", "pipe:[11]");
	scene->hint.sequence++;
	assert_int_equal(fill(scene).wait.pid, 7);
}

static void pipe_end_nowhere(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pipe:[11]");
	call_put(scene, SYS_read, 3, 0, 0);
	for (int scan = 0; scan < 10; scan++)
		assert_string_equal(fill(scene).wait.on, "pipe");
	/* the holder comes, and is found by the next search */
	fake_proc_put_process(&scene->proc, 900, "fd/1", "pipe:[11]");
	scene->now_ns += 11 * NS_PER_SECOND;
	for (int scan = 0; scan < 10; scan++)
		fill(scene);
	assert_int_equal(fill(scene).wait.pid, 900);
	/* the holder closes it */
	fake_proc_put_process(&scene->proc, 900, "fd/1", "/dev/null");
	scene->now_ns += 3 * NS_PER_SECOND;
	assert_int_equal(fill(scene).wait.pid, ABSENT);
}

static void poll_sets(void **state)
{
	struct pollfd polled[6] = {{.fd = 3}, {.fd = -1}, {.fd = 4}};
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:[eventfd]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "eventfd-count:               1f\n");
	fake_proc_put(&scene->proc, 7, 7, "fd/4", "/dev/tty\x1b[31m");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, polled, sizeof(polled));
	call_put(scene, SYS_ppoll, PAGE, 3, 0);
	assert_string_equal(fill(scene).wait.on, "2 fds: /dev/tty\x1b[31m, eventfd count 31");
	call_put(scene, SYS_ppoll, PAGE, 2, 0);
	assert_string_equal(fill(scene).wait.on, "1 fd: eventfd count 31");
	call_put(scene, SYS_ppoll, PAGE, 6, 0); /* 0 descriptors have no holder */
	assert_string_equal(fill(scene).wait.on, "5 fds");
	call_put(scene, SYS_ppoll, PAGE, -1, 0); /* 4 G of descriptors, which are not there */
	assert_null(fill(scene).wait.on);
	call_put(scene, SYS_ppoll, 0, 0, 0);
	assert_string_equal(fill(scene).wait.on, "timer");
	call_put(scene, SYS_ppoll, 0x700000, 3, 0);
	assert_null(fill(scene).wait.on);
}

static void select_sets(void **state)
{
	uint64_t set[16] = {1 << 3};
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:inotify");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, set, sizeof(set));
	call_put(scene, SYS_pselect6, 4, PAGE, 0);
	assert_string_equal(fill(scene).wait.on, "1 fd: inotify");
	call_put(scene, SYS_pselect6, 3, PAGE, 0);
	assert_string_equal(fill(scene).wait.on, "timer");
	call_put(scene, SYS_pselect6, INT32_MAX, PAGE, 0);
	assert_string_equal(fill(scene).wait.on, "1+ fd: inotify");
	call_put(scene, SYS_pselect6, (int)0xffd01000, PAGE,
		 0); /* the address of an old i386 call */
	assert_null(fill(scene).wait.on);
}

static void epoll_sets(void **state)
{
	static char lines[1 << 20];
	struct scene *scene = *state;
	size_t length = 0;

	fake_proc_put(&scene->proc, 7, 7, "fd/5", "anon_inode:[eventpoll]");
	fake_proc_put(&scene->proc, 7, 7, "fd/6", "anon_inode:[eventpoll]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/5",
		      "pos:\t0\ntfd:        6 events:       19\ntfd:        5 events: 1\n");
	call_put(scene, SYS_epoll_pwait, 5, 0, 0);
	assert_string_equal(fill(scene).wait.on, "2 fds: 2x epoll");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/5", "tfd:");
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "1 fd: fd 0");
	for (int i = 0; i < 10000; i++)
		length += (size_t)sprintf(lines + length,
					  "tfd: %8d events:       19 data:                0  pos:0"
					  " ino:1 sdev:1\n",
					  i);
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/5", lines);
	scene->hint.sequence++;
	assert_non_null(strstr(fill(scene).wait.on, "+ fds"));
}

static void path_of_open(void **state)
{
	struct scene *scene = *state;
	char longest[5000];

	fake_proc_put(&scene->proc, 7, 7, "cwd", "/home/x");
	fake_proc_put(&scene->proc, 7, 7, "fd/4", "/srv");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, "data/a", 7);
	call_put(scene, SYS_openat, AT_FDCWD, PAGE, 0);
	assert_string_equal(fill(scene).file.name, "/home/x/data/a");
	assert_int_equal(fill(scene).file.fd, ABSENT);
	assert_null(fill(scene).file.type);
	call_put(scene, SYS_openat, 4, PAGE, 0);
	assert_string_equal(fill(scene).file.name, "/srv/data/a");
	/* it does not wait for that path, as far as is known */
	assert_null(fill(scene).wait.on);
	call_put(scene, SYS_openat, 4, PAGE + 4, 0);
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, "    /abs", 9);
	assert_string_equal(fill(scene).file.name, "/abs");
	/* path not in memory: the directory is known */
	call_put(scene, SYS_openat, 4, 0x700000, 0);
	assert_string_equal(fill(scene).file.name, "/srv");
	/* no end in this page, and the next page is missing */
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, longest, (size_t)sysconf(_SC_PAGESIZE));
	call_put(scene, SYS_openat, 4, PAGE, 0);
	assert_string_equal(fill(scene).file.name, "/srv");
}

static void rings(void **state)
{
	const uint32_t ring[8] = {0, 8, 6, 1, 0xa10a10a1}, lie[8] = {0, 8, 60, 1, 0xa10a10a1};
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:[io_uring]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3",
		      "SqMask:\t0x7\nCachedSqHead:\t2\nCachedCqTail:\t4294967295\n");
	call_put(scene, SYS_io_uring_enter, 3, 0, 1);
	assert_string_equal(fill(scene).wait.on, "io_uring 3 in flight");
	assert_int_equal(fill(scene).wait.inflight, 3);
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "CachedSqHead:\t2\nCachedCqTail:\t9\n");
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "io_uring");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "SqThread:\t-1\n"); /* before 5.16 */
	scene->hint.sequence++;
	assert_int_equal(fill(scene).wait.inflight, ABSENT);

	fake_proc_put_page(&scene->proc, 7, 7, PAGE, ring, sizeof(ring));
	call_put(scene, SYS_io_getevents, PAGE, 5, 8);
	assert_string_equal(fill(scene).wait.on, "aio at least 2 in flight");
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, lie, sizeof(lie));
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "aio");
}

static void processes(void **state)
{
	struct scene *scene = *state;

	call_put(scene, SYS_wait4, 8, 0, 0);
	assert_string_equal(fill(scene).wait.on, "pid 8 x");
	call_put(scene, SYS_wait4, 0xffffffff, 0, 0);
	assert_string_equal(fill(scene).wait.on, "child");
	fake_proc_put(&scene->proc, 7, 7, "children", "8 ");
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "pid 8 x");
	fake_proc_put(&scene->proc, 7, 7, "children", "8 9 ");
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "child");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", "pidfd:[9]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "Pid:\t8\nNSpid:\t8\n");
	call_put(scene, SYS_waitid, 3, 3, 0);
	assert_string_equal(fill(scene).wait.on, "pid 8 x");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "Pid:\t-1\n");
	scene->hint.sequence++;
	assert_string_equal(fill(scene).wait.on, "pidfd");
}

/* Writes /proc/locks: a lock that process 8 took, of this kind, and the wait of process 7 for it.
 * Returns the lock's words. */
static const char *locks_put(struct scene *scene, const char *kind, int locker, int waiter)
{
	static char held[128];
	char path[128], words[512];
	struct stat file;

	snprintf(path, sizeof(path), "%s/x.lock", scene->proc.root);
	assert_int_equal(stat(path, &file), 0);
	snprintf(held, sizeof(held), "%s  ADVISORY  WRITE %d fe:00:%llu 0 EOF", kind, locker,
		 (unsigned long long)file.st_ino);
	snprintf(words, sizeof(words),
		 "1: POSIX  ADVISORY  WRITE 1 fe:00:1 0 EOF\nnonsense\n"
		 "2: %s\n"
		 "2: -> %s  ADVISORY  WRITE 6 fe:00:%llu 0 EOF\n"
		 "2:  -> %s  ADVISORY  WRITE %d fe:00:%llu 0 EOF\n3: cut",
		 held, kind, (unsigned long long)file.st_ino, kind, waiter,
		 (unsigned long long)file.st_ino);
	fake_proc_put(&scene->proc, 7, 7, "../../../locks", words);
	return held;
}

/* Gives descriptor 5 of a process, which is far from all others, the open file with that lock. */
static void open_file_put(struct scene *scene, int pid, int ppid, const char *held)
{
	char path[128], words[256];

	snprintf(path, sizeof(path), "%s/x.lock", scene->proc.root);
	fake_proc_put_process(&scene->proc, pid, "fd/5", path);
	fake_proc_put_process(&scene->proc, pid, "comm", "far\n");
	snprintf(words, sizeof(words),
		 "pos:\t0\nlock:\t1: POSIX  ADVISORY  READ  1 fe:00:1 0 1\n"
		 "lock:\t2: %s\n",
		 held);
	fake_proc_put_process(&scene->proc, pid, "fdinfo/5", words);
	snprintf(words, sizeof(words),
		 "%d (far) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
		 "0 "
		 "0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		 pid, ppid, pid);
	fake_proc_put_process(&scene->proc, pid, "stat", words);
}

/* Checks what the thread waits for, after the file's name, once the search has ended. */
static void expect_lock(struct scene *scene, const char *held)
{
	char text[256];
	const char *found;

	snprintf(text, sizeof(text), "lock on %s/x.lock%s", scene->proc.root, held);
	scene->hint.sequence++;
	for (int scan = 0; scan < 20; scan++)
		found = fill(scene).wait.on;
	assert_string_equal(found, text);
}

static void file_lock_call(struct scene *scene, long nr, int64_t command)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/x.lock", scene->proc.root);
	fake_proc_put(&scene->proc, 7, 7, "../../../x.lock", "");
	fake_proc_put(&scene->proc, 7, 7, "fd/3", path);
	fake_proc_put_process(&scene->proc, 8, "status", "Name:\tx\nTgid:\t8\nUid:\t0\t0\t0\t0\n");
	call_put(scene, nr, 3, command, 0);
}

/* The holders of a lock of flock(2) are the processes that have the open file, not the one that
 * took it: that one has ended, and its id is another process's. */
static void flock_holders(void **state)
{
	struct scene *scene = *state;
	const char *held;

	file_lock_call(scene, SYS_flock, 0);
	expect_lock(scene, "");
	held = locks_put(scene, "FLOCK", 8, 7);
	open_file_put(scene, 5000, 1, held);
	expect_lock(scene, " held by 5000 far");
	assert_int_equal(fill(scene).wait.pid, 5000);
	/* a child has inherited it */
	open_file_put(scene, 4000, 5000, held);
	fake_proc_put(&scene->proc, 5000, 5000, "children", "4000 ");
	scene->now_ns += NS_PER_SECOND;
	expect_lock(scene, " held by 4000 far and 1 more");
	/* the one that took it has it, too */
	open_file_put(scene, 8, 1, held);
	fake_proc_drop(&scene->proc, 5000, 5000);
	fake_proc_put_process(&scene->proc, 5000, "fdinfo/5", "pos:\t0\n");
	fake_proc_put_process(&scene->proc, 4000, "fdinfo/5", "pos:\t0\n");
	expect_lock(scene, " held by 8 far");
	/* none has it */
	fake_proc_put_process(&scene->proc, 8, "fdinfo/5", "pos:\t0\n");
	expect_lock(scene, ", no holder in /proc");
	assert_int_equal(fill(scene).wait.pid, ABSENT);
}

static void fcntl_lock_holders(void **state)
{
	struct scene *scene = *state;

	file_lock_call(scene, SYS_fcntl, F_SETLKW);
	locks_put(scene, "POSIX", 8, 7);
	expect_lock(scene, " held by 8 x");
	locks_put(scene, "POSIX", 0, 7); /* a process of another pid namespace */
	expect_lock(scene, ", no holder in /proc");
	file_lock_call(scene, SYS_fcntl, 38); /* F_OFD_SETLKW */
	open_file_put(scene, 5000, 1, locks_put(scene, "OFDLCK", -1, -1));
	expect_lock(scene, " held by 5000 far");
	/* the lock goes to another process, and looks the same */
	fake_proc_put_process(&scene->proc, 5000, "fdinfo/5", "pos:\t0\n");
	open_file_put(scene, 4000, 1, locks_put(scene, "OFDLCK", -1, -1));
	expect_lock(scene, " held by 4000 far");
}

static void sockets_that_are_none(void **state)
{
	static const char *const links[] = {"socket:[", "socket:[x]",
					    "socket:[99999999999999999999]", "socket:[5]"};
	struct scene *scene = *state;

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		fake_proc_put(&scene->proc, 7, 7, "fd/3", links[i]);
		call_put(scene, SYS_read, 3, 0, 0);
		assert_null(fill(scene).file.connection);
		assert_string_equal(fill(scene).wait.on, links[i]);
		assert_string_equal(fill(scene).file.type, "socket");
	}
	assert_int_equal(net_namespaces_error(), 0);
}

static void wchan_of_who_sleeps(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "wchan", "do_wait");
	assert_string_equal(fill(scene).wait.wchan, "do_wait");
	fake_proc_put(&scene->proc, 7, 7, "wchan", "0");
	scene->hint.sequence++;
	assert_null(fill(scene).wait.wchan);
	scene->requested.now.state = STATE_ON;
	fake_proc_put(&scene->proc, 7, 7, "wchan", "do_wait");
	assert_null(fill(scene).wait.wchan);
}

/* Returns waits_on of a thread that sleeps in that kernel function, in openat(2) of that path. */
static const char *asleep_in(struct scene *scene, const char *function, const char *path)
{
	char line[64];

	snprintf(line, sizeof(line), "%s", function);
	fake_proc_put(&scene->proc, 7, 7, "wchan", line);
	fake_proc_put_page(&scene->proc, 7, 7, PAGE, path, strlen(path) + 1);
	call_put(scene, SYS_openat, AT_FDCWD, PAGE, 0);
	return fill(scene).wait.on;
}

/* The kernel function of a wait says what it is for; the call's path alone is no answer. */
static void kernel_functions(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "mountinfo",
		      "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		      "25 24 0:50 / /far rw - nfs4 files:/export rw,vers=4.2\n"
		      "26 24 0:51 / /net rw - autofs /etc/auto.misc rw,fd=6,pgrp=21,indirect\n"
		      "27 24 0:39 / /fuse rw - fuse.sshfs far:/x rw\n");
	fake_proc_put_process(&scene->proc, 21, "comm", "automount\n");
	scene->requested.now.state = STATE_DISK;
	assert_null(asleep_in(scene, "down_read", "/data/x"));
	assert_string_equal(asleep_in(scene, "folio_wait_bit_common", "/data/x"), "/data/x");
	assert_string_equal(asleep_in(scene, "rpc_wait_bit_killable", "/far/x"),
			    "file server files:/export (nfs4)");
	assert_string_equal(asleep_in(scene, "nfs_wait_on_request.part.0", "/data/x"),
			    "file server");
	assert_string_equal(asleep_in(scene, "autofs_wait", "/net/x"),
			    "automount of /net by 21 automount");
	assert_int_equal(fill(scene).wait.pid, 21);
	assert_string_equal(asleep_in(scene, "request_wait_answer", "/fuse/x"),
			    "FUSE server of /fuse");
	assert_string_equal(asleep_in(scene, "jbd2_log_wait_commit", "/data/x"), "journal commit");
	assert_string_equal(asleep_in(scene, "fanotify_handle_event", "/data/x"),
			    "fanotify permission");
	/* a request that is in flight is what it waits for */
	scene->requested.io.dev = "sda";
	assert_string_equal(asleep_in(scene, "some_function", "/data/x"), "/data/x");
}

/* One wait is looked up once, and again after a second. */
static void wait_is_kept(void **state)
{
	struct scene *scene = *state;

	fake_proc_put(&scene->proc, 7, 7, "fd/3", "anon_inode:[eventfd]");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "eventfd-count: 1\n");
	call_put(scene, SYS_read, 3, 0, 0);
	assert_string_equal(fill(scene).wait.on, "eventfd count 1");
	fake_proc_put(&scene->proc, 7, 7, "fdinfo/3", "eventfd-count: 2\n");
	assert_string_equal(fill(scene).wait.on, "eventfd count 1");
	scene->now_ns += 2 * NS_PER_SECOND;
	assert_string_equal(fill(scene).wait.on, "eventfd count 2");
	/* another thread with this tid */
	fake_proc_drop(&scene->proc, 7, 7);
	scene->requested.thread.start_ns = 2;
	assert_null(fill(scene).wait.on);
	scene->requested.now.state = STATE_RQ;
	assert_null(fill(scene).wait.on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		waits_test(mutex_holders),
		waits_test(mutex_of_many),
		waits_test(facts_are_read_again),
		waits_test(waits_are_renewed),
		waits_test(mutex_lies),
		waits_test(lost_mutexes),
		waits_test(rwlock_holders),
		waits_test(rwlock_lies),
		waits_test(mutex_in_a_container),
		waits_test(join_of_a_thread),
		waits_test(pipe_end_in_another_process),
		waits_test(pipe_end_of_a_near_thread),
		waits_test(pipe_ends_shared),
		waits_test(pipe_end_among_many),
		waits_test(pipe_end_of_its_own),
		waits_test(pipe_end_nowhere),
		waits_test(poll_sets),
		waits_test(select_sets),
		waits_test(epoll_sets),
		waits_test(path_of_open),
		waits_test(rings),
		waits_test(processes),
		waits_test(flock_holders),
		waits_test(fcntl_lock_holders),
		waits_test(sockets_that_are_none),
		waits_test(wchan_of_who_sleeps),
		waits_test(kernel_functions),
		waits_test(wait_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
