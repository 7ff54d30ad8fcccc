/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks of asyncio from memory made up by the test as Python 3.14 lays it out: also such as no
 * Python makes. tests/live/case_tasks.py tests a real one. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "python_scene.h"
#include "unwind/runtime/python_tasks.h"

/* Members of a task, as the section .AsyncioDebug of the scene has them. */
#define TASK_BYTES 168
#define AWAITED_BY 96
#define STATE 104
#define IS_TASK 108
#define AWAITED_BY_SET 109
#define WAITER 120
#define COROUTINE 128
#define NAME 136
#define NODE 152
#define INTERPRETER_TASKS 480
#define THREAD_TASK 208
#define THREAD_TASKS 216

#define TYPE_BYTES 272
#define TYPE_NAME 24
#define TYPE_FLAGS 168
#define TYPE_BASE 256
#define TYPE_IS_NUMBER (1u << 24)
#define AWAITS (-1)
#define CREATED (-3)
#define EXECUTING 0

static struct python_scene scene;
static uint64_t asyncio, coroutine_type, number_type, set_type, future_type, task_type;
static uint64_t lists[2]; /* of the interpreter, and of the thread */
static struct tasks found;
static char why[TASK_WHY_SIZE];

static uint64_t type_make(const char *name, uint64_t flags, uint64_t base)
{
	uint64_t at = fake_memory(&scene, TYPE_BYTES), text = fake_memory(&scene, 40);

	put(text, name, strlen(name) + 1);
	put_word(at + TYPE_NAME, text);
	put_word(at + TYPE_FLAGS, flags);
	put_word(at + TYPE_BASE, base);
	return at;
}

static void list_begin(uint64_t list)
{
	put_word(list, list);
	put_word(list + 8, list);
}

static void scene_make(void)
{
	static const uint64_t words[] = {TASK_BYTES,	    NAME,      AWAITED_BY, IS_TASK,
					 AWAITED_BY_SET,    COROUTINE, NODE,	   512,
					 INTERPRETER_TASKS, 256,       200,	   THREAD_TASK,
					 THREAD_TASKS};

	python_scene_make(&scene, V3_14);
	asyncio = fake_memory(&scene, sizeof(words));
	put(asyncio, words, sizeof(words));
	coroutine_type = type_make("coroutine", 0, 0);
	number_type = type_make("int", TYPE_IS_NUMBER, 0);
	set_type = type_make("set", 0, 0);
	future_type = type_make("_asyncio.Future", 0, 0);
	task_type = type_make("_asyncio.Task", 0, future_type);
	lists[0] = scene.interpreter + INTERPRETER_TASKS;
	lists[1] = scene.state + THREAD_TASKS;
	list_begin(lists[0]);
	list_begin(lists[1]);
}

static void scene_done(void)
{
	tasks_done(&found);
	python_scene_done(&scene);
}

/* Reads the tasks. Returns as tasks_list(). */
static int read_all(void)
{
	const struct task_source source = {
		.pid = getpid(),
		.exports.python =
			{
				[MODULE_PYTHON_RUNTIME] = scene.runtime - 4096,
				[MODULE_PYTHON_VERSION] = (uintptr_t)&scene.version - 4096,
				[MODULE_PYTHON_CODE] = scene.code_type - 4096,
				[MODULE_PYTHON_STRING] = scene.string_type - 4096,
				[MODULE_PYTHON_COROUTINE] = coroutine_type - 4096,
			},
		.distance = 4096,
		.asyncio = asyncio,
	};
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), err;

	assert_true(fd >= 0);
	tasks_done(&found);
	scene.memory.mem = fd;
	err = tasks_list(&found, &source, &scene.memory, why);
	scene.memory.mem = -1;
	close(fd);
	return err;
}

/* A coroutine in a function, which awaits something; 0: it has not begun. */
static uint64_t coroutine_make(const char *function, uint64_t awaited)
{
	const struct python_layout *layout = &scene.layout;
	uint64_t at = fake_memory(&scene, layout->generator_frame + 128);
	uint64_t frame = at + layout->generator_frame;
	const int8_t state = awaited ? AWAITS : CREATED;

	put_word(at + 8, coroutine_type);
	put(at + layout->generator_state, &state, 1);
	frame_put(&scene, frame, function_make(&scene, function), 0, 1);
	put_word(frame + layout->frame_stack_top, frame + 112);
	put_word(frame + 104, awaited | 1);
	return at;
}

static uint64_t number_make(uint64_t number)
{
	uint64_t at = fake_memory(&scene, 40);
	const uint32_t digits[] = {(uint32_t)number & 0x3fffffff, (uint32_t)(number >> 30)};

	put_word(at + 8, number_type);
	put_word(at + 16, (digits[1] ? 2 : 1) << 3);
	put(at + 24, digits, sizeof(digits));
	return at;
}

static uint64_t future_make(void)
{
	uint64_t at = fake_memory(&scene, TASK_BYTES);

	put_word(at + 8, future_type);
	return at;
}

/* Adds a task at the end of a list. */
static uint64_t task_make(uint64_t list, uint64_t name, uint64_t coroutine, uint64_t waiter)
{
	uint64_t at = fake_memory(&scene, TASK_BYTES), last;
	const uint8_t yes = 1;

	put_word(at + 8, task_type);
	put(at + IS_TASK, &yes, 1);
	put_word(at + NAME, name);
	put_word(at + COROUTINE, coroutine);
	put_word(at + WAITER, waiter);
	memcpy(&last, (void *)(uintptr_t)(list + 8), sizeof(last));
	put_word(at + NODE, list);
	put_word(at + NODE + 8, last);
	put_word(last, at + NODE);
	put_word(list + 8, at + NODE);
	return at;
}

/* Has several others await a task or future. */
static void await_by(uint64_t of, const uint64_t *others, size_t count)
{
	uint64_t set = fake_memory(&scene, 64), table = fake_memory(&scene, 8 * 16);
	const uint8_t yes = 1;

	assert_true(count < 7);
	put_word(set + 8, set_type);
	put_word(set + scene.layout.set_used, count);
	put_word(set + scene.layout.set_table, table);
	put_word(set + scene.layout.set_mask, 7);
	put_word(table, set); /* what was removed has no hash */
	put_word(table + 8, UINT64_MAX);
	for (size_t i = 0; i < count; i++) {
		put_word(table + 16 * (i + 1), others[i]);
		put_word(table + 16 * (i + 1) + 8, 1 + i);
	}
	put_word(of + AWAITED_BY, set);
	put(of + AWAITED_BY_SET, &yes, 1);
}

/* A task that waits for a future of its own. */
static uint64_t waiting_make(uint64_t list, uint64_t name)
{
	uint64_t future = future_make();

	return task_make(list, name, coroutine_make("outer", coroutine_make("inner", future)),
			 future);
}

static void assert_group(size_t at, uint64_t count, const char *state, int64_t tid,
			 const char *names, const char *awaited_by, const char *stack)
{
	const struct task_group *group = &found.groups[at];

	assert_true(at < found.group_count);
	assert_int_equal(group->count, count);
	assert_string_equal(task_state_name(group->state), state);
	assert_int_equal(group->tid, tid);
	assert_string_equal(group->names, names);
	assert_string_equal(group->awaited_by, awaited_by);
	assert_string_equal(group->stack, stack);
}

static void assert_missed(uint64_t moved, uint64_t unread, uint64_t lost)
{
	assert_int_equal(found.counts.moved, moved);
	assert_int_equal(found.counts.unread, unread);
	assert_int_equal(found.counts.lists, lost);
}

#define BOTH "outer (x.py:11);inner (x.py:11)"

/* Equal tasks are one group; names are numbers or texts; those that await a task are found through
 * futures, also where each awaits the other. */
static void tasks_are_grouped(void **state)
{
	uint64_t one, other, two[2], outer, done;
	const int32_t finished = 1;

	scene_make();
	for (uint64_t number = 3; number < 6; number++)
		waiting_make(lists[1], number_make(number));
	waiting_make(lists[1], number_make(1ull << 30 | 7));
	waiting_make(lists[1], text_make(&scene, "Task-6"));
	waiting_make(lists[1], text_make(&scene, "Task-06"));
	one = task_make(lists[1], text_make(&scene, "one"), coroutine_make("single", 0), 0);
	other = task_make(lists[1], text_make(&scene, "other"), coroutine_make("single", 0), 0);
	outer = future_make();
	two[0] = one;
	two[1] = outer;
	await_by(outer, two, 2);
	two[1] = other;
	done = future_make();
	put(done + STATE, &finished, sizeof(finished));
	await_by(waiting_make(lists[0], text_make(&scene, "awaited")), two, 2);
	put_word(waiting_make(lists[0], text_make(&scene, "by one")) + AWAITED_BY, outer);
	task_make(lists[0], text_make(&scene, "woken"), coroutine_make("outer", done), done);
	assert_int_equal(read_all(), 0);
	assert_missed(0, 0, 0);
	assert_int_equal(found.counts.tasks, 11);
	assert_int_equal(found.group_count, 4);
	assert_string_equal(found.version, "3.14.0");
	assert_group(0, 6, "waiting", scene.thread.tid, "Task-06, Task-3..Task-6, Task-1073741831",
		     "", BOTH);
	assert_group(1, 2, "ready", scene.thread.tid, "one, other", "", "single (x.py:11)");
	/* both are awaited from the same place */
	assert_group(2, 2, "waiting", 0, "awaited, by one", "one, other", BOTH);
	assert_group(3, 1, "ready", 0, "woken", "", "outer (x.py:11)");
	scene_done();
}

/* The stack of a task that runs is its thread's, from the task's coroutine on. */
static void running_has_stack(void **state)
{
	const int8_t executing = EXECUTING;
	uint64_t coroutine, frame, mark, task;

	scene_make();
	coroutine = coroutine_make("body", 0);
	frame = coroutine + scene.layout.generator_frame;
	put(coroutine + scene.layout.generator_state, &executing, 1);
	task = task_make(lists[1], number_make(1), coroutine, 0);
	mark = fake_memory(&scene, 96);
	frame_put(&scene, mark, 0, frame_make(&scene, function_make(&scene, "run"), 0), 3);
	put_word(frame + scene.layout.frame_previous, mark);
	put_word(scene.state + scene.layout.thread_frame,
		 frame_make(&scene, function_make(&scene, "plain"), frame));
	put_word(scene.state + THREAD_TASK, task);
	assert_int_equal(read_all(), 0);
	assert_int_equal(found.group_count, 1);
	assert_group(0, 1, "running", scene.thread.tid, "Task-1", "",
		     "body (x.py:11);plain (x.py:11)");
	/* no thread says that it runs it: it changes just now */
	put_word(scene.state + THREAD_TASK, 0);
	assert_int_equal(read_all(), 0);
	assert_int_equal(found.group_count, 0);
	assert_missed(1, 0, 0);
	scene_done();
}

/* A task that is not what it is in its list, or whose parts are not what they must be, is missed.
 */
static void strange_tasks_are_missed(void **state)
{
	uint64_t task, loop, set, huge[1];
	const uint8_t two = 2;

	scene_make();
	waiting_make(lists[1], number_make(1)); /* the only one that is right */
	/* awaits itself */
	loop = coroutine_make("loop", 1);
	put_word(loop + scene.layout.generator_frame + 104, loop);
	task_make(lists[1], number_make(2), loop, future_make());
	/* the stack's top is not there */
	task = waiting_make(lists[1], number_make(3));
	loop = coroutine_make("wild", 8);
	put_word(loop + scene.layout.generator_frame + scene.layout.frame_stack_top, 1ull << 62);
	put_word(task + COROUTINE, loop);
	/* a set without end, one that has less than it says, and one with what is no future in it
	 */
	for (int i = 0; i < 3; i++) {
		task = waiting_make(lists[1], number_make(4));
		huge[0] = i == 2 ? set_type : task;
		await_by(task, huge, 1);
		memcpy(&set, (void *)(uintptr_t)(task + AWAITED_BY), sizeof(set));
		if (i == 0)
			put_word(set + scene.layout.set_mask, UINT64_MAX);
		if (i == 1)
			put_word(set + scene.layout.set_used, 5);
	}
	/* names: a number without end; neither number nor text */
	task = waiting_make(lists[1], number_make(5));
	memcpy(&set, (void *)(uintptr_t)(task + NAME), sizeof(set));
	put_word(set + 16, UINT64_MAX);
	waiting_make(lists[1], future_make());
	/* no task; of no such type */
	put(waiting_make(lists[1], number_make(6)) + IS_TASK, &two, 1);
	put_word(waiting_make(lists[1], number_make(7)) + 8, set_type);
	assert_int_equal(read_all(), 0);
	assert_int_equal(found.group_count, 1);
	assert_group(0, 1, "waiting", scene.thread.tid, "Task-1", "", BOTH);
	assert_missed(4, 5, 0);
	scene_done();
}

/* Lists that lead astray, or round and round, end. */
static void strange_lists_end(void **state)
{
	uint64_t task[3];

	scene_make();
	for (uint64_t i = 0; i < 3; i++)
		task[i] = waiting_make(lists[1], number_make(i + 1));
	put_word(task[2] + NODE, task[1] + NODE); /* round and round, without the head */
	put_word(lists[0], 0);
	assert_int_equal(read_all(), 0);
	assert_missed(1, 0, 2); /* the last one's neighbour has another */
	assert_int_equal(found.counts.tasks, 2);
	/* a list of threads that does so */
	put_word(scene.state + scene.layout.thread_next, scene.state);
	put_word(scene.interpreter + scene.layout.interpreter_next, scene.interpreter);
	assert_int_equal(read_all(), 0);
	assert_true(found.counts.lists > 2);
	assert_true(found.counts.tasks <= 3);
	scene_done();
}

/* More functions than are kept, and coroutines without end. */
static void deep_stacks_are_cut(void **state)
{
	uint64_t future, inner;

	scene_make();
	future = inner = future_make();
	for (int i = 0; i < TASK_FRAMES_MAX + 5; i++)
		inner = coroutine_make(i ? "outer" : "innermost", inner);
	task_make(lists[1], number_make(1), inner, future);
	assert_int_equal(read_all(), 0);
	assert_int_equal(found.group_count, 1);
	assert_memory_equal(found.groups[0].stack, "[lost];outer (x.py:11);", 23);
	assert_string_equal(strrchr(found.groups[0].stack, ';'), ";innermost (x.py:11)");
	scene_done();
}

static void others_are_refused(void **state)
{
	scene_make();
	put_word(asyncio + 8, TASK_BYTES); /* the name's offset */
	assert_int_equal(read_all(), -EIO);
	assert_non_null(strstr(why, "makes no sense"));
	put_word(asyncio, UINT64_MAX);
	put_word(asyncio + 8, 1ull << 40);
	assert_int_equal(read_all(), -EIO);
	asyncio = 0;
	assert_int_equal(read_all(), -ENOTSUP);
	assert_non_null(strstr(why, "has not loaded asyncio"));
	scene.version = V3_13;
	assert_int_equal(read_all(), -ENOTSUP);
	assert_non_null(strstr(why, "it runs Python 3.13, and"));
	scene.version = 0x030f00f0;
	assert_int_equal(read_all(), -ENOTSUP);
	assert_non_null(strstr(why, "it runs Python 3.15, and"));
	scene.version = V3_14;
	put_word(scene.runtime + 16, 1); /* without the GIL */
	assert_int_equal(read_all(), -ENOTSUP);
	assert_non_null(strstr(why, "without the GIL"));
	scene_done();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_are_grouped),	    cmocka_unit_test(running_has_stack),
		cmocka_unit_test(strange_tasks_are_missed), cmocka_unit_test(strange_lists_end),
		cmocka_unit_test(deep_stacks_are_cut),	    cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
