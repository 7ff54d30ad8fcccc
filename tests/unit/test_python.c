/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Python frames from memory made up by the test in the layout of each version: its own.
 * tests/live/case_python.py tests real interpreters. */
#include "unit.h"

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/names.h"
#include "unwind/runtime/python_frames.h"
#include "unwind/runtime/python_memory.h"
#include "python_scene.h"
#include "sleeper.h"

static void walk_make(struct python_scene *scene, uint32_t count, enum walk_end end)
{
	scene->walk.end = end;
	scene->walk.count = count;
	for (uint32_t i = 0; i < count; i++) {
		scene->walk.frames[i] = (struct frame){0, 0x1000 + i};
		scene->walk.locations[i] =
			(struct frame_location){0x2000 + i, stack_at(scene, 8 * i)};
	}
}

/* Adds frames to the walk after forgetting what was read before: the test changes the thread, which
 * a sleeping one can't do. */
static void add(struct python_scene *scene)
{
	python_frames_add(&scene->python, &scene->thread, &scene->walk);
}

/* Checks a walk: names of functions, and C frames as their numbers. */
static void assert_walk(const struct python_scene *scene, const char *expected)
{
	char text[4096] = "";

	for (uint32_t i = 0; i < scene->walk.count; i++) {
		const struct frame *frame = &scene->walk.frames[i];
		const char *name = frame_own_name(frame);
		size_t used = strlen(text);

		/* functions and lines are unlimited in number: no name is permanent */
		if (name)
			assert_ptr_not_equal(name_of_string(name), name);
		if (name)
			snprintf(text + used, sizeof(text) - used, "%s|", name);
		else
			snprintf(text + used, sizeof(text) - used, "%d|",
				 (int)(frame->address - 0x1000));
	}
	assert_string_equal(text, expected);
}

static struct python_scene scene;

static void calls_are_replaced(void **state)
{
	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		walk_make(&scene, 5, WALK_WHOLE);
		add(&scene);
		assert_walk(&scene, "0|Some.inner (x.py:11)|outer (x.py:11)|2|main (x.py:11)|4|");
		assert_int_equal(scene.walk.end, WALK_WHOLE);
		assert_int_equal(scene.python.broken_count + scene.python.unknown_count, 0);
		python_scene_done(&scene);
	}
}

/* Frames beyond the last C frame that was found follow it; frames passed over come first. */
static void lost_walks_keep_functions(void **state)
{
	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		walk_make(&scene, 3, WALK_LOST);
		add(&scene);
		assert_walk(&scene, "0|Some.inner (x.py:11)|outer (x.py:11)|2|main (x.py:11)|");
		assert_int_equal(scene.walk.end, WALK_LOST);
		walk_make(&scene, 5, WALK_WHOLE);
		scene.walk.locations[0].sp = scene.walk.locations[1].sp =
			scene.walk.locations[2].sp;
		add(&scene);
		assert_walk(&scene, "Some.inner (x.py:11)|outer (x.py:11)|0|1|2|main (x.py:11)|4|");
		/* the interpreter is known already */
		walk_make(&scene, 1, WALK_LOST);
		scene.walk.frames[0].module = MODULE_NONE;
		add(&scene);
		assert_walk(&scene, "0|Some.inner (x.py:11)|outer (x.py:11)|main (x.py:11)|");
		walk_make(&scene, 1, WALK_WHOLE);
		scene.walk.frames[0].module = MODULE_NONE;
		add(&scene);
		assert_walk(&scene, "0|");
		python_scene_done(&scene);
	}
}

/* The innermost frames are kept, at their positions. */
static void deep_recursion_is_cut(void **state)
{
	uint64_t code, frame, mark;

	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		code = function_make(&scene, "recurse");
		mark = stack_at(&scene, 12);
		frame = scene.layout.has_is_entry ? 0 : mark;
		for (int depth = 0; depth < 2000; depth++)
			frame = frame_make(&scene, code, frame);
		if (scene.layout.has_is_entry)
			put_word(mark + scene.layout.cframe_frame, frame);
		else if (!scene.layout.has_cframe)
			put_word(scene.state + scene.layout.thread_frame, frame);
		else
			put_word(scene.cframe + scene.layout.cframe_frame, frame);
		walk_make(&scene, 5, WALK_WHOLE);
		add(&scene);
		assert_int_equal(scene.walk.count, STACK_FRAMES_MAX);
		assert_int_equal(scene.walk.end, WALK_DEEP);
		assert_int_equal(scene.walk.frames[0].address, 0x1000);
		for (uint32_t at = 1; at < STACK_FRAMES_MAX; at++)
			assert_string_equal(frame_own_name(&scene.walk.frames[at]),
					    "recurse (x.py:11)");
		assert_int_equal(scene.python.broken_count, 0);
		python_scene_done(&scene);
	}
}

/* One code object has one name, which is looked up once; other code at its address has another. */
static void names_are_kept(void **state)
{
	uint64_t other, frame;

	python_scene_make(&scene, V3_12);
	calls_make(&scene);
	walk_make(&scene, 5, WALK_WHOLE);
	add(&scene);
	assert_int_equal(python_memory_name_count(), 3);
	other = function_make(&scene, "other");
	for (int i = 0; i < 2; i++) {
		walk_make(&scene, 5, WALK_WHOLE);
		add(&scene);
		assert_int_equal(python_memory_name_count(), 3 + i);
		/* frame of main, the caller of its mark */
		memcpy(&frame, &scene.stack[12 + scene.layout.frame_previous / 8], sizeof(frame));
		frame_put(&scene, frame, other, stack_at(&scene, 28), 0);
	}
	assert_walk(&scene, "0|Some.inner (x.py:11)|outer (x.py:11)|2|other (x.py:11)|4|");
	python_scene_done(&scene);
}

/* Makes it the thread's innermost frame. Returns the address where that is written. */
static uint64_t frame_set(uint64_t frame)
{
	uint64_t at = scene.state + scene.layout.thread_frame;

	if (scene.layout.has_cframe) {
		uint64_t cframe = fake_memory(&scene, 32);

		put_word(at, cframe);
		at = cframe + scene.layout.cframe_frame;
	}
	put_word(at, frame);
	return at;
}

/* Returns the function in the walk of a new scan, or NULL. */
static const char *function_shown(void)
{
	scene.thread.now_ns++;
	walk_make(&scene, 1, WALK_LOST);
	add(&scene);
	for (uint32_t i = 0; i < scene.walk.count; i++)
		if (frame_own_name(&scene.walk.frames[i]))
			return frame_own_name(&scene.walk.frames[i]);
	return NULL;
}

/* Code made where other code was, with texts at the addresses of that code's texts. */
static void texts_are_looked_at(void **state)
{
	uint64_t name, file, code;

	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		name = text_make(&scene, "<lambda>");
		file = text_make(&scene, "one");
		code = code_make(&scene, name, file, 10);
		frame_set(frame_make(&scene, code, 0));
		assert_string_equal(function_shown(), "<lambda> (one:11)");
		put(file + scene.layout.string_bytes, "two", 3);
		assert_string_equal(function_shown(), "<lambda> (two:11)");
		put(name + scene.layout.string_bytes, "function", 8);
		assert_string_equal(function_shown(), "function (two:11)");
		python_scene_done(&scene);
	}
}

static void name_is(uint64_t name, uint64_t file, const char *expected)
{
	frame_set(frame_make(&scene, code_make(&scene, name, file, 10), 0));
	if (expected)
		assert_string_equal(function_shown(), expected);
	else
		assert_null(function_shown());
}

static void names_of_all_kinds(void **state)
{
	static const uint8_t latin[] = {'f', 0xfc, 'n'};
	static const uint16_t wide[] = {0x65e5, 0xd800, 'x', 0x3b1};
	static const uint32_t widest[] = {0x1d518, 0x110000, 0};
	char function[300], path[400];
	uint64_t file;

	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		file = text_make(&scene, "x.py");
		name_is(text_make(&scene, "<module>"), file, "<module> (x.py:11)");
		name_is(string_make(&scene, 1, false, latin, 3), file, "f\xc3\xbcn (x.py:11)");
		name_is(string_make(&scene, 2, false, wide, 4), file,
			"\xe6\x97\xa5?x\xce\xb1 (x.py:11)");
		name_is(string_make(&scene, 4, false, widest, 3), file,
			"\xf0\x9d\x94\x98?? (x.py:11)");
		name_is(text_make(&scene, "a;b\n\x1b[1m"), text_make(&scene, "/;/\t"),
			"a:b??[1m (?:11)");
		name_is(text_make(&scene, ""), text_make(&scene, ""), " (:11)");
		memset(function, 'f', sizeof(function));
		memset(path, 'p', sizeof(path));
		memcpy(path + sizeof(path) - 6, "/y.py", 6);
		function[sizeof(function) - 1] = '\0';
		name_is(string_make(&scene, 1, true, function, 299),
			string_make(&scene, 1, true, path, sizeof(path) - 1),
			"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
			"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
			"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
			" (y.py:11)");
		python_scene_done(&scene);
	}
}

static void names_that_are_none(void **state)
{
	uint64_t good, bad;
	uint32_t word;

	python_scene_make(&scene, V3_13);
	good = text_make(&scene, "good");
	name_is(good, 0, NULL);
	name_is(0, good, NULL);
	name_is(8, good, NULL);
	bad = text_make(&scene, "bad");
	put_word(bad + 8, scene.code_type);
	name_is(bad, good, NULL);
	bad = text_make(&scene, "bad");
	put_word(bad + scene.layout.string_length, UINT64_MAX);
	name_is(bad, good, NULL);
	bad = text_make(&scene, "bad");
	word = 3u << 2 | 0x20; /* invalid kind of string */
	put(bad + scene.layout.string_state, &word, sizeof(word));
	name_is(bad, good, NULL);
	word = 1u << 2; /* a string whose text is elsewhere */
	put(bad + scene.layout.string_state, &word, sizeof(word));
	name_is(bad, good, NULL);
	python_scene_done(&scene);
}

/* Cycles of frames and threads, and invalid pointers, come to an end. */
static void lies_end(void **state)
{
	static const uint64_t nowhere[] = {8, UINT64_MAX - 7, 1ull << 47};
	uint64_t frame, frames_at, broken;

	for (size_t i = 0; i < VERSION_COUNT; i++) {
		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		/* except in 3.11, the position of the functions is in an outer frame */
		broken = !scene.layout.has_is_entry;
		frame = frame_make(&scene, function_make(&scene, "self"), 0);
		put_word(frame + scene.layout.frame_previous, frame);
		frames_at = frame_set(frame);
		walk_make(&scene, 5, WALK_WHOLE);
		add(&scene);
		assert_int_equal(scene.walk.count, STACK_FRAMES_MAX);
		assert_int_equal(scene.walk.end, WALK_DEEP);
		assert_int_equal(scene.python.broken_count, broken);
		for (size_t j = 0; j < sizeof(nowhere) / sizeof(nowhere[0]); j++) {
			put_word(frames_at, nowhere[j]);
			walk_make(&scene, 5, WALK_WHOLE);
			add(&scene);
			assert_walk(&scene, "0|1|2|3|4|");
			assert_int_equal(scene.python.broken_count, broken + j + 1);
		}
		/* not a code object */
		put_word(frames_at, frame);
		frame_put(&scene, frame, scene.runtime, 0, 0);
		walk_make(&scene, 5, WALK_WHOLE);
		add(&scene);
		assert_int_equal(scene.python.broken_count, broken + 4);
		python_scene_done(&scene);
	}
}

static void threads_in_a_circle(void **state)
{
	uint64_t other;

	python_scene_make(&scene, V3_13);
	calls_make(&scene);
	other = fake_memory(&scene, 256);
	put_word(scene.interpreter + scene.layout.interpreter_threads, other);
	put_word(other + scene.layout.thread_interpreter, scene.interpreter);
	put_word(other + scene.layout.thread_native_id, 1);
	put_word(other + scene.layout.thread_next, other);
	walk_make(&scene, 5, WALK_WHOLE);
	add(&scene);
	assert_walk(&scene, "0|1|2|3|4|");
	/* the list is not read again at once */
	put_word(other + scene.layout.thread_next, scene.state);
	add(&scene);
	assert_walk(&scene, "0|1|2|3|4|");
	/* a list that took long, as on a busy machine, is not read again for fifty times as long */
	scene.thread.now_ns += 600 * NS_PER_SECOND;
	add(&scene);
	assert_walk(&scene, "0|Some.inner (x.py:11)|outer (x.py:11)|2|main (x.py:11)|4|");
	/* known, but another thread's by now */
	put_word(scene.state + scene.layout.thread_native_id, 1);
	scene.thread.now_ns += 600 * NS_PER_SECOND;
	walk_make(&scene, 5, WALK_WHOLE);
	add(&scene);
	assert_walk(&scene, "0|1|2|3|4|");
	python_scene_done(&scene);
}

/* Long stacks use up the reading time of their own process in a scan, and another's are read. */
static void long_stacks_cost_their_process(void **state)
{
	struct stack_walk before;
	uint64_t code, frame;
	int whole = 0;

	python_scene_make(&scene, V3_13);
	calls_make(&scene);
	walk_make(&scene, 5, WALK_WHOLE);
	before = scene.walk;
	code = function_make(&scene, "recurse");
	frame = stack_at(&scene, 12);
	for (int depth = 0; depth < 2000; depth++)
		frame = frame_make(&scene, code, frame);
	put_word(scene.state + scene.layout.thread_frame, frame);
	/* counts the threads that have that stack and are read whole */
	for (; whole < 1000 && !scene.python.late_count; whole++) {
		scene.walk = before;
		add(&scene);
	}
	assert_in_range(whole, 5, 100);
	assert_int_equal(scene.walk.count, before.count);
	scene.walk = before;
	add(&scene);
	assert_int_equal(scene.python.late_count, 2);
	/* the next scan reads again */
	scene.thread.now_ns += NS_PER_MS;
	scene.walk = before;
	add(&scene);
	assert_int_equal(scene.python.late_count, 2);
	assert_int_equal(scene.walk.count, STACK_FRAMES_MAX);
	python_scene_done(&scene);
}

static void unknown_versions(void **state)
{
	uint8_t head[PYTHON_RUNTIME_HEAD_BYTES];
	struct python_layout layout = {.code_name = 77};
	const uint64_t far = PYTHON_OFFSET_MAX + 1, wide = PYTHON_STRUCT_BYTES_MAX, one = 1;

	head_fill(head, V3_13);
	assert_false(python_layout_get(&layout, V3_14, head)); /* the head says 3.13 */
	assert_false(python_layout_get(&layout, 0x030a0df0, head));
	head_fill(head, 0x030f00f0);
	assert_false(python_layout_get(&layout, 0x030f00f0, head));
	head_fill(head, V3_13);
	head[0] = 'y';
	assert_false(python_layout_get(&layout, V3_13, head));
	head_fill(head, V3_13);
	memcpy(head + 16, &one, sizeof(one)); /* build without a GIL */
	assert_false(python_layout_get(&layout, V3_13, head));
	head_fill(head, V3_13);
	memcpy(head + 40, &far, sizeof(far));
	assert_false(python_layout_get(&layout, V3_13, head));
	head_fill(head, V3_13);
	memcpy(head + 232, &wide, sizeof(wide));
	assert_false(python_layout_get(&layout, V3_13, head));
	/* such a process is counted */
	python_scene_make(&scene, V3_12);
	scene.version = 0x030a0df0;
	walk_make(&scene, 5, WALK_WHOLE);
	add(&scene);
	assert_walk(&scene, "0|1|2|3|4|");
	assert_int_equal(scene.python.unknown_count, 1);
	python_scene_done(&scene);
}

/* co_linetable of a function with a loop, an exception and a list over several lines, compiled by
 * CPython 3.11.2, and the lines that its co_positions() reports; 0: no line. */
static void lines_are_pythons(void **state)
{
	static const uint8_t table[] = {
		0x80, 0x00, 0xdd, 0x0d, 0x12, 0x90, 0x31, 0x89, 0x58, 0x8c, 0x58, 0xf0, 0x00, 0x03,
		0x05, 0x0f, 0xf0, 0x00, 0x03, 0x05, 0x0f, 0x88, 0x01, 0xd8, 0x08, 0x0d, 0xf0, 0x02,
		0x01, 0x0d, 0x0e, 0xf1, 0x03, 0x02, 0x09, 0x0f, 0x88, 0x05, 0x88, 0x05, 0xf0, 0x06,
		0x08, 0x05, 0x18, 0xdd, 0x0e, 0x18, 0x98, 0x15, 0xd1, 0x0e, 0x1f, 0xd4, 0x0e, 0x1f,
		0xd0, 0x08, 0x1f, 0xf8, 0xdd, 0x0b, 0x15, 0xf0, 0x00, 0x06, 0x05, 0x18, 0xf0, 0x00,
		0x06, 0x05, 0x18, 0xf0, 0x00, 0x06, 0x05, 0x18, 0xd8, 0x0b, 0x10, 0xf0, 0x00, 0x05,
		0x09, 0x18, 0xf0, 0x04, 0x01, 0x11, 0x13, 0xf0, 0x00, 0x01, 0x11, 0x13, 0x98, 0x46,
		0xf0, 0x00, 0x01, 0x11, 0x13, 0xf1, 0x00, 0x01, 0x11, 0x13, 0xf4, 0x00, 0x01, 0x11,
		0x13, 0xf0, 0x06, 0x00, 0x11, 0x16, 0xf0, 0x05, 0x02, 0x16, 0x17, 0xf1, 0x03, 0x03,
		0x11, 0x17, 0xf0, 0x03, 0x04, 0x0d, 0x18, 0xf0, 0x00, 0x04, 0x0d, 0x18, 0xf0, 0x00,
		0x04, 0x0d, 0x18, 0xf0, 0x03, 0x05, 0x09, 0x18, 0xf0, 0x00, 0x05, 0x09, 0x18, 0xf0,
		0x00, 0x05, 0x09, 0x18, 0xf0, 0x03, 0x06, 0x05, 0x18, 0xf8, 0xf8, 0xf8,
	};
	static const uint8_t lines[] = {
		1,  2,	2,  2,	2,  2,	2,  2,	2,  2,	2, 2, 2,  2,  2,  2,  2,  2,  3,  4,
		3,  3,	3,  3,	6,  7,	7,  7,	7,  7,	7, 7, 7,  7,  7,  7,  7,  7,  7,  7,
		0,  8,	8,  8,	8,  8,	8,  8,	8,  8,	9, 9, 11, 11, 11, 11, 11, 11, 11, 11,
		11, 11, 11, 14, 12, 11, 11, 10, 10, 10, 9, 9, 9,  8,  0,  0,  0,
	};
	uint8_t cut[sizeof(table)];

	for (size_t unit = 0; unit < sizeof(lines); unit++)
		assert_int_equal(python_line(table, sizeof(table), 1, unit), lines[unit]);
	assert_int_equal(python_line(table, sizeof(table), 1, sizeof(lines)), 0);
	assert_int_equal(python_line(table, sizeof(table), 1, UINT64_MAX), 0);
	for (size_t bytes = 0; bytes < sizeof(table); bytes++) {
		memcpy(cut, table, bytes);
		python_line(cut, bytes, 1, sizeof(lines) - 1);
	}
	memset(cut, 0xff, sizeof(cut));
	python_line(cut, sizeof(cut), INT32_MAX, sizeof(cut) * 8);
	memset(cut, 0x7f, sizeof(cut));
	python_line(cut, sizeof(cut), INT32_MIN, sizeof(cut) * 8);
}

/* Offsets in struct _gil_runtime_state of all versions: last_holder, locked, switch_number, cond,
 * mutex. */
enum { GIL_HOLDER = 8, GIL_LOCKED = 16, GIL_SWITCHES = 24, GIL_MUTEX = 80, GIL_BYTES = 256 };

static bool gil_read(uint64_t gil, struct python_gil *reported)
{
	const struct python python = {.layout = scene.layout,
				      .runtime = scene.runtime,
				      .code_type = scene.code_type,
				      .string_type = scene.string_type};

	thread_memory_begin(&scene.memory, scene.thread.tid, gil);
	return python_gil_read(&python, &scene.memory, gil, true, reported);
}

static void gil_has_a_holder(void **state)
{
	for (size_t i = 0; i < VERSION_COUNT; i++) {
		struct python_gil reported;
		uint64_t gil;

		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		gil = fake_memory(&scene, GIL_BYTES);
		put_word(gil + GIL_HOLDER, scene.state);
		put_word(gil + GIL_SWITCHES, 7);
		assert_true(gil_read(gil, &reported)); /* free: its last holder does not count */
		assert_int_equal(reported.holder, 0);
		put_word(gil + GIL_LOCKED, 1);
		assert_true(gil_read(gil, &reported));
		assert_int_equal(reported.holder, scene.thread.tid);
		assert_int_equal(reported.switches, 7);
		assert_false(reported.changing);
		assert_string_equal(reported.location, "x.py:11");
		put_word(gil + GIL_MUTEX, 2);
		assert_true(gil_read(gil, &reported));
		assert_true(reported.changing);
		python_scene_done(&scene);
	}
}

static void gil_may_be_none(void **state)
{
	struct python_gil reported;
	uint64_t gil;

	python_scene_make(&scene, V3_13);
	gil = fake_memory(&scene, GIL_BYTES);
	put_word(gil + GIL_HOLDER, scene.state);
	put_word(gil + GIL_LOCKED, UINT32_MAX); /* before the GIL is made */
	assert_false(gil_read(gil, &reported));
	put_word(gil + GIL_LOCKED, 2);
	assert_false(gil_read(gil, &reported));
	put_word(gil + GIL_LOCKED, 1);
	assert_true(gil_read(gil, &reported));
	assert_string_equal(reported.location, ""); /* the holder is in no function */
	put_word(gil + GIL_HOLDER, 4096);
	assert_false(gil_read(gil, &reported));
	assert_false(gil_read(4096, &reported));
	python_scene_done(&scene);
}

static uint64_t word_of(uint64_t address)
{
	uint64_t word;

	assert_false(thread_memory_read(&scene.memory, address, &word, sizeof(word)));
	return word;
}

/* Asks for the lock whose semaphore the thread waits for. */
static struct python_lock_answer rlock_ask(uint64_t semaphore)
{
	const struct runtime_request of = {
		.pid = scene.thread.pid,
		.tid = scene.thread.tid,
		.id = (uint64_t)scene.thread.tid,
		.now_ns = 1,
		.address = semaphore,
		.distance = 4096,
		.exports = scene.module.exports,
		.with_location = true,
	};
	struct python_lock_answer answer;

	runtime_service_clear();
	thread_memory_begin(&scene.memory, scene.thread.tid, scene.state);
	assert_int_equal(python_lock_answer(&of, &scene.memory, &answer), sizeof(answer));
	return answer;
}

/* An RLock is found among what the waiting function works on, itself or as the object of a method,
 * by its semaphore and its type. */
static void rlock_has_an_owner(void **state)
{
	enum { SLOTS = 72, OWNER = 0x7000, OTHER = 0x8000 };
	const int32_t one = 1;

	for (size_t i = 0; i < VERSION_COUNT; i++) {
		bool known = versions[i] != V3_14;
		uint64_t frame, code, type, lock, method, semaphore, name;
		struct python_lock_answer answer;

		python_scene_make(&scene, versions[i]);
		calls_make(&scene);
		thread_memory_begin(&scene.memory, scene.thread.tid, scene.state);
		frame = word_of(scene.state + scene.layout.thread_frame);
		if (scene.layout.has_cframe)
			frame = word_of(frame + scene.layout.cframe_frame);
		code = word_of(frame + scene.layout.frame_code) & ~7ull;
		put(code + scene.layout.code_first_line - 4, &one, sizeof(one));
		put(code + scene.layout.code_first_line + 4, &one, sizeof(one));
		put_word(scene.state + scene.layout.thread_native_id - 8, OWNER);
		type = fake_memory(&scene, 64);
		name = fake_memory(&scene, 16);
		put(name, "_thread.RLock", 14);
		put_word(type + 24, name);
		lock = fake_memory(&scene, 48);
		semaphore = fake_memory(&scene, 32);
		method = fake_memory(&scene, 48);
		put_word(lock, 2);
		put_word(lock + 8, type);
		put_word(lock + 16, semaphore);
		put_word(lock + 24, OWNER);
		put_word(lock + 32, 1);
		put_word(method + 24, lock);
		for (int of_method = 0; of_method < 2; of_method++) {
			put_word(frame + SLOTS + 8, of_method ? method : lock);
			answer = rlock_ask(semaphore);
			assert_true(answer.requested);
			assert_int_equal(answer.found, known);
			assert_int_equal(answer.holder, known ? scene.thread.tid : 0);
			assert_int_equal(answer.address, known ? lock : 0);
			assert_string_equal(answer.location, known ? "x.py:11" : "");
		}
		answer = rlock_ask(semaphore + 16); /* another lock */
		assert_true(answer.requested && !answer.found);
		put_word(lock + 24, OTHER); /* no thread of Python's */
		answer = rlock_ask(semaphore);
		assert_int_equal(answer.found, known);
		assert_int_equal(answer.lost, known);
		assert_int_equal(answer.holder, 0);
		put_word(lock + 32, 0); /* it is being taken, or let go of */
		answer = rlock_ask(semaphore);
		assert_int_equal(answer.requested, !known);
		assert_false(answer.found);
		put(name, "_thread.Rlock", 14);
		answer = rlock_ask(semaphore);
		assert_true(answer.requested && !answer.found);
		python_scene_done(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_replaced),
		cmocka_unit_test(lost_walks_keep_functions),
		cmocka_unit_test(deep_recursion_is_cut),
		cmocka_unit_test(names_are_kept),
		cmocka_unit_test(texts_are_looked_at),
		cmocka_unit_test(names_of_all_kinds),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(lies_end),
		cmocka_unit_test(threads_in_a_circle),
		cmocka_unit_test(long_stacks_cost_their_process),
		cmocka_unit_test(unknown_versions),
		cmocka_unit_test(lines_are_pythons),
		cmocka_unit_test(gil_has_a_holder),
		cmocka_unit_test(gil_may_be_none),
		cmocka_unit_test(rlock_has_an_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
