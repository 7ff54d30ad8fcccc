/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitors and locks of Java from memory made up by the test. tests/live/case_java.py tests a real
 * JVM. */
#include "unit.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/java_memory.h"

#define THREADS 3
#define WAITER 100 /* id of the first thread */
#define OTHER 101
#define HOLDER 102
#define ANONYMOUS 1
#define ABSENT_FIELD(scene, field) ((scene)->java.layout.reported &= ~(1ull << (field)))

struct os_thread {
	uint64_t state;
	int32_t id;
};

struct lock_stack {
	int32_t top;
	uint64_t base[8];
};

struct vm_thread {
	uint64_t first, os, stack, stack_bytes, pending, owner_id, next;
	struct lock_stack locks;
};

struct monitor {
	uint64_t header, object, owner;
};

struct threads_list {
	uint32_t count;
	uint64_t threads;
};

struct scene {
	struct vm_thread threads[THREADS];
	struct os_thread os[THREADS];
	uint64_t pointers[THREADS], list_at, first;
	struct threads_list list;
	struct monitor monitor;
	uint64_t object, handle;
	uint64_t stacks[THREADS][64];
	struct java_threads java;
	struct thread_memory memory;
};

static void field(struct scene *scene, enum java_field field, uint64_t at)
{
	scene->java.layout.at[field] = at;
	scene->java.layout.reported |= 1ull << field;
}

static void layout_fill(struct scene *scene)
{
	field(scene, JAVA_THREADS, (uintptr_t)&scene->list_at);
	field(scene, JAVA_LIST_COUNT, offsetof(struct threads_list, count));
	field(scene, JAVA_LIST_THREADS, offsetof(struct threads_list, threads));
	field(scene, JAVA_THREAD_OS, offsetof(struct vm_thread, os));
	field(scene, JAVA_OS_ID, offsetof(struct os_thread, id));
	field(scene, JAVA_THREAD_STACK, offsetof(struct vm_thread, stack));
	field(scene, JAVA_THREAD_STACK_BYTES, offsetof(struct vm_thread, stack_bytes));
	field(scene, JAVA_THREAD_PENDING, offsetof(struct vm_thread, pending));
	field(scene, JAVA_MONITOR_OWNER, offsetof(struct monitor, owner));
	field(scene, JAVA_MONITOR_OBJECT, offsetof(struct monitor, object));
}

static int scene_make(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	for (int i = 0; i < THREADS; i++) {
		scene->os[i].id = WAITER + i;
		scene->threads[i].os = (uintptr_t)&scene->os[i];
		scene->threads[i].stack = (uintptr_t)(scene->stacks[i] + 64);
		scene->threads[i].stack_bytes = sizeof(scene->stacks[i]);
		scene->pointers[i] = (uintptr_t)&scene->threads[i];
	}
	scene->threads[0].pending = (uintptr_t)&scene->monitor;
	scene->list = (struct threads_list){THREADS, (uintptr_t)scene->pointers};
	scene->list_at = (uintptr_t)&scene->list;
	scene->object = 0x700000;
	scene->handle = (uintptr_t)&scene->object;
	scene->monitor.object = scene->handle;
	scene->monitor.owner = (uintptr_t)&scene->threads[2];
	layout_fill(scene);
	thread_memory_init(&scene->memory, "/proc", false, 0);
	*state = scene;
	return 0;
}

static int scene_free(void **state)
{
	struct scene *scene = *state;

	java_threads_done(&scene->java);
	thread_memory_done(&scene->memory);
	free(scene);
	return 0;
}

static void memory_begin(struct scene *scene)
{
	thread_memory_begin_copied(&scene->memory, syscall(SYS_gettid), 0, NULL, 0);
}

/* Returns whether the thread waits for a monitor, which is filled. */
static bool monitor_read(struct scene *scene, int64_t id, uint64_t episode,
			 struct java_monitor *monitor)
{
	struct java_monitor_answer answer = {.known = true};

	java_monitor_read(&scene->java, &scene->memory, id, episode, &answer);
	*monitor = answer.monitor;
	return answer.waits;
}

/* Returns the holder; -1: that thread waits for no monitor. */
static int64_t holder_of(struct scene *scene, int64_t id)
{
	struct java_monitor monitor;

	memory_begin(scene);
	assert_true(java_threads_list(&scene->java, &scene->memory));
	if (!monitor_read(scene, id, 1, &monitor))
		return -1;
	assert_int_equal(monitor.address, (uintptr_t)&scene->monitor);
	assert_int_equal(monitor.owner, scene->monitor.owner);
	return monitor.holder;
}

static void owners(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	assert_int_equal(holder_of(scene, OTHER), -1);
	assert_int_equal(holder_of(scene, HOLDER + 1), -1);
	scene->monitor.owner = (uintptr_t)&scene->stacks[2][3]; /* lock record of HOLDER */
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	scene->monitor.owner = (uintptr_t)&scene->stacks[1][63];
	assert_int_equal(holder_of(scene, WAITER), OTHER);
	scene->monitor.owner = 0;
	assert_int_equal(holder_of(scene, WAITER), 0);
	scene->monitor.owner = 4711;
	assert_int_equal(holder_of(scene, WAITER), 0);
}

/* Owners since JDK 24: numbers that are not addresses. */
static void owners_by_id(void **state)
{
	struct scene *scene = *state;

	field(scene, JAVA_THREAD_OWNER_ID, offsetof(struct vm_thread, owner_id));
	for (uint64_t i = 0; i < THREADS; i++)
		scene->threads[i].owner_id = 30 + i;
	scene->monitor.owner = 32;
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	scene->monitor.owner = (uintptr_t)&scene->threads[2];
	assert_int_equal(holder_of(scene, WAITER), 0);
}

/* The owner is not named: the holder has the object in its LockStack, below the top of that. */
static void owners_without_a_name(void **state)
{
	struct scene *scene = *state;
	struct lock_stack *locks = &scene->threads[2].locks;

	scene->monitor.owner = ANONYMOUS;
	assert_int_equal(holder_of(scene, WAITER), 0);
	field(scene, JAVA_THREAD_LOCKS, offsetof(struct vm_thread, locks));
	field(scene, JAVA_LOCKS_TOP, offsetof(struct lock_stack, top));
	field(scene, JAVA_LOCKS_FIRST, offsetof(struct lock_stack, base));
	locks->base[1] = scene->object;
	locks->top = (int32_t)offsetof(struct vm_thread, locks.base[1]);
	assert_int_equal(holder_of(scene, WAITER), 0);
	locks->top = (int32_t)offsetof(struct vm_thread, locks.base[2]);
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	locks->top = INT32_MAX;
	locks->base[1] = 0;
	assert_int_equal(holder_of(scene, WAITER), 0);
}

/* Before JDK 10 threads are a linked list. */
static void threads_in_a_chain(void **state)
{
	struct scene *scene = *state;

	ABSENT_FIELD(scene, JAVA_THREADS);
	field(scene, JAVA_THREAD_FIRST, (uintptr_t)&scene->first);
	field(scene, JAVA_THREAD_NEXT, offsetof(struct vm_thread, next));
	scene->first = scene->pointers[0];
	for (int i = 0; i + 1 < THREADS; i++)
		scene->threads[i].next = scene->pointers[i + 1];
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	scene->threads[2].next = scene->pointers[0]; /* invalid: a ring */
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
}

/* Threads that end or are invalid are left out; a tid that became another thread is no waiter or
 * holder. */
static void threads_that_are_none(void **state)
{
	struct scene *scene = *state;
	struct java_monitor monitor;

	scene->threads[1].os = 0;
	assert_int_equal(holder_of(scene, OTHER), -1);
	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	scene->threads[2].stack_bytes = UINT64_MAX;
	assert_int_equal(holder_of(scene, WAITER), 0);
	scene->threads[2].stack_bytes = 8;
	memory_begin(scene);
	assert_true(java_threads_list(&scene->java, &scene->memory));
	scene->os[2].id = 4711;
	memory_begin(scene);
	assert_true(monitor_read(scene, WAITER, 1, &monitor));
	assert_int_equal(monitor.holder, 0);
	scene->os[0].id = 4711;
	memory_begin(scene);
	assert_false(monitor_read(scene, WAITER, 2, &monitor));
	scene->list.count = UINT32_MAX;
	scene->list.threads = 0;
	memory_begin(scene);
	java_threads_list(&scene->java, &scene->memory);
	assert_int_equal(scene->java.count, 0);
}

/* The lock that a thread waits for is read once in a wait episode, its holder each time. */
static void stays(void **state)
{
	struct scene *scene = *state;
	struct java_monitor monitor;

	assert_int_equal(holder_of(scene, WAITER), HOLDER);
	for (uint64_t episode = 7; episode < 9; episode++) {
		memory_begin(scene);
		assert_int_equal(monitor_read(scene, WAITER, episode, &monitor), episode == 7);
		scene->threads[0].pending = 0;
		scene->monitor.owner = (uintptr_t)&scene->threads[1];
		memory_begin(scene);
		assert_int_equal(monitor_read(scene, WAITER, episode, &monitor), episode == 7);
		if (episode == 7)
			assert_int_equal(monitor.holder, OTHER);
	}
}

/* A process that names another monitor each time does not make memory grow. */
static void monitors_without_end(void **state)
{
	struct scene *scene = *state;
	size_t count = 3 * (size_t)JAVA_THREADS_MAX;
	char *monitors = calloc(1, count + sizeof(struct monitor));
	struct java_monitor monitor;

	assert_non_null(monitors);
	memset(monitors, ANONYMOUS, count + sizeof(struct monitor));
	memory_begin(scene);
	assert_true(java_threads_list(&scene->java, &scene->memory));
	for (size_t i = 0; i < count; i++) {
		scene->threads[0].pending = (uintptr_t)monitors + i;
		memory_begin(scene);
		assert_true(monitor_read(scene, WAITER, i, &monitor));
		assert_true(scene->java.holders.used <= JAVA_THREADS_MAX);
	}
	scene->threads[0].pending = (uintptr_t)&scene->monitor;
	memory_begin(scene);
	assert_true(monitor_read(scene, WAITER, count, &monitor));
	assert_int_equal(monitor.holder, HOLDER);
	free(monitors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(owners, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(owners_by_id, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(owners_without_a_name, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(threads_in_a_chain, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(threads_that_are_none, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(stays, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(monitors_without_end, scene_make, scene_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
