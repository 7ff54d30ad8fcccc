/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of java.util.concurrent from memory made up by the test. tests/live/case_java.py tests a
 * real JVM. */
#include "unit.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/java_locks.h"

#define NATIVE 0x7f0000001000ull /* address of the owner's JavaThread */
#define OBJECT_BYTES 64
#define FAR 300 /* an offset that a stream has in two bytes */

struct symbol {
	uint16_t length;
	char text[70];
};

enum { NAME_OTHER, NAME_BLOCKER, NAME_NATIVE, NAME_OWNER, NAMES };

static const char *const names[NAMES] = {"other", "parkBlocker", "eetop", "exclusiveOwnerThread"};

struct pool {
	uint64_t head[2];
	uint64_t constants[NAMES];
};

struct class
{
	uint64_t super, name, pool, table, stream;
	uint16_t field_count;
	struct symbol symbol;
};

enum { ROOT, THREAD, WORKER, OWNABLE, LOCK, CONDITION, CLASSES };

static const struct {
	const char *name;
	int super;
} classes[CLASSES] = {
	[ROOT] = {"java/lang/Object", -1},
	[THREAD] = {"java/lang/Thread", ROOT},
	[WORKER] = {"Worker", THREAD},
	[OWNABLE] = {"java/util/concurrent/locks/AbstractOwnableSynchronizer", ROOT},
	[LOCK] = {"java/util/concurrent/locks/ReentrantLock$NonfairSync", OWNABLE},
	[CONDITION] = {"java/util/concurrent/locks/AbstractQueuedSynchronizer$Condition", ROOT},
};

struct row {
	uint16_t access, name, signature, value, low, high;
};

struct array {
	int32_t length;
	union {
		struct row rows[3];
		uint8_t bytes[40];
	} data;
};

struct option {
	const char *name;
	const bool *value;
};

struct heap {
	uint64_t head;
	int32_t count;
	bool stopped;
};

/* Offsets of fields in objects. */
enum { BLOCKER_AT = 16, NATIVE_AT = 24, OWNER_AT = 32 };

struct scene {
	struct symbol symbols[NAMES];
	struct pool pool;
	struct class classes[CLASSES];
	struct array thread_fields, lock_fields;
	char parked[OBJECT_BYTES], owner[OBJECT_BYTES], lock[OBJECT_BYTES];
	uint64_t handle, other_handle;
	uint64_t java_thread[2]; /* handles of its thread, and of the virtual one */
	struct option options[4];
	bool set[4];
	uint64_t options_at, option_count;
	struct heap heap;
	uint64_t heap_at, base;
	int32_t shift;
	bool narrow;
	struct java_layout layout;
	struct java_locks locks;
	struct thread_memory memory;
};

static void field(struct scene *scene, enum java_field field, uint64_t at)
{
	scene->layout.at[field] = at;
	scene->layout.reported |= 1ull << field;
}

static void absent(struct scene *scene, enum java_field field)
{
	scene->layout.reported &= ~(1ull << field);
}

static void layout_fill(struct scene *scene)
{
	field(scene, JAVA_THREAD_OBJECT, 0);
	field(scene, JAVA_OBJECT_MARK, 0);
	field(scene, JAVA_OBJECT_CLASS, 8);
	field(scene, JAVA_OBJECT_NARROW, 8);
	field(scene, JAVA_CLASS_SUPER, offsetof(struct class, super));
	field(scene, JAVA_CLASS_NAME, offsetof(struct class, name));
	field(scene, JAVA_CLASS_POOL, offsetof(struct class, pool));
	field(scene, JAVA_CLASS_FIELDS, offsetof(struct class, table));
	field(scene, JAVA_CLASS_FIELD_COUNT, offsetof(struct class, field_count));
	field(scene, JAVA_NAME_LENGTH, offsetof(struct symbol, length));
	field(scene, JAVA_NAME_TEXT, offsetof(struct symbol, text));
	field(scene, JAVA_LIST_LENGTH, offsetof(struct array, length));
	field(scene, JAVA_SHORTS_DATA, offsetof(struct array, data));
	field(scene, JAVA_BYTES_DATA, offsetof(struct array, data));
	field(scene, JAVA_OBJECT_BASE, (uintptr_t)&scene->base);
	field(scene, JAVA_OBJECT_SHIFT, (uintptr_t)&scene->shift);
	field(scene, JAVA_CLASS_BASE, (uintptr_t)&scene->base);
	field(scene, JAVA_CLASS_SHIFT, (uintptr_t)&scene->shift);
	field(scene, JAVA_HEAP, (uintptr_t)&scene->heap_at);
	field(scene, JAVA_HEAP_STOPPED, offsetof(struct heap, stopped));
	field(scene, JAVA_HEAP_COUNT, offsetof(struct heap, count));
	field(scene, JAVA_OPTIONS, (uintptr_t)&scene->options_at);
	field(scene, JAVA_OPTION_COUNT, (uintptr_t)&scene->option_count);
	field(scene, JAVA_OPTION_NAME, offsetof(struct option, name));
	field(scene, JAVA_OPTION_VALUE, offsetof(struct option, value));
	scene->layout.pool_bytes = offsetof(struct pool, constants);
	scene->layout.option_bytes = sizeof(struct option);
}

static void symbol_set(struct symbol *symbol, const char *text)
{
	symbol->length = (uint16_t)strlen(text);
	assert_true(symbol->length <= sizeof(symbol->text));
	memcpy(symbol->text, text, symbol->length);
}

static void pointer_set(struct scene *scene, char *at, const void *to)
{
	uint64_t wide = (uintptr_t)to;
	uint32_t number = to ? (uint32_t)(wide - (uintptr_t)scene) : 0;

	if (scene->narrow)
		memcpy(at, &number, sizeof(number));
	else
		memcpy(at, &wide, sizeof(wide));
}

static void mark_set(char *object, uint64_t mark)
{
	memcpy(object, &mark, sizeof(mark));
}

static struct row row_of(int name, uint32_t offset)
{
	uint32_t packed = offset << 2 | 1;

	return (struct row){
		.name = (uint16_t)name, .low = (uint16_t)packed, .high = (uint16_t)(packed >> 16)};
}

static void classes_fill(struct scene *scene)
{
	for (int i = 0; i < NAMES; i++) {
		symbol_set(&scene->symbols[i], names[i]);
		scene->pool.constants[i] = (uintptr_t)&scene->symbols[i];
	}
	for (int i = 0; i < CLASSES; i++) {
		struct class *class = &scene->classes[i];

		symbol_set(&class->symbol, classes[i].name);
		class->name = (uintptr_t) & class->symbol;
		class->pool = (uintptr_t)&scene->pool;
		if (classes[i].super >= 0)
			class->super = (uintptr_t)&scene->classes[classes[i].super];
	}
	scene->thread_fields.data.rows[0] = row_of(NAME_OTHER, FAR);
	scene->thread_fields.data.rows[1] = row_of(NAME_BLOCKER, BLOCKER_AT);
	scene->thread_fields.data.rows[2] = row_of(NAME_NATIVE, NATIVE_AT);
	scene->lock_fields.data.rows[0] = row_of(NAME_OWNER, OWNER_AT);
	scene->classes[THREAD].table = (uintptr_t)&scene->thread_fields;
	scene->classes[THREAD].field_count = 3;
	scene->classes[OWNABLE].table = (uintptr_t)&scene->lock_fields;
	scene->classes[OWNABLE].field_count = 1;
}

/* Has classes tell their fields as since Java 21. Each has its name, type, offset, access and
 * flags, and what these say that follows. Numbers have 1 added. */
static void streams_fill(struct scene *scene)
{
	static const uint8_t thread[] = {
		3 + 1,
		0 + 1, /* fields */
		NAME_OTHER + 1,
		1,
		237,
		2,
		1,
		0x15 + 1,
		1,
		1,
		1, /* at FAR, all that can follow */
		NAME_BLOCKER + 1,
		1,
		BLOCKER_AT + 1,
		1,
		0 + 1, /* no more */
		NAME_NATIVE + 1,
		1,
		NATIVE_AT + 1,
		1,
		0x0a + 1, /* flags without more */
	};
	static const uint8_t lock[] = {1 + 1, 0 + 1, NAME_OWNER + 1, 1, OWNER_AT + 1, 1, 0 + 1};

	absent(scene, JAVA_CLASS_FIELDS);
	field(scene, JAVA_CLASS_STREAM, offsetof(struct class, stream));
	scene->thread_fields.length = sizeof(thread);
	memcpy(scene->thread_fields.data.bytes, thread, sizeof(thread));
	scene->lock_fields.length = sizeof(lock);
	memcpy(scene->lock_fields.data.bytes, lock, sizeof(lock));
	scene->classes[THREAD].stream = (uintptr_t)&scene->thread_fields;
	scene->classes[OWNABLE].stream = (uintptr_t)&scene->lock_fields;
}

static void objects_fill(struct scene *scene, bool narrow)
{
	uint64_t native = NATIVE;

	scene->narrow = scene->set[0] = scene->set[1] = narrow;
	memset(scene->parked, 0, OBJECT_BYTES);
	memset(scene->owner, 0, OBJECT_BYTES);
	memset(scene->lock, 0, OBJECT_BYTES);
	mark_set(scene->parked, 1);
	mark_set(scene->owner, 1);
	mark_set(scene->lock, 1);
	pointer_set(scene, scene->parked + 8, &scene->classes[WORKER]);
	pointer_set(scene, scene->owner + 8, &scene->classes[THREAD]);
	pointer_set(scene, scene->lock + 8, &scene->classes[LOCK]);
	pointer_set(scene, scene->parked + BLOCKER_AT, scene->lock);
	pointer_set(scene, scene->lock + OWNER_AT, scene->owner);
	memcpy(scene->owner + NATIVE_AT, &native, sizeof(native));
}

static int scene_make(void **state)
{
	static const char *const options[4] = {"UseCompressedOops", "UseCompressedClassPointers",
					       "UseZGC", "UseCompactObjectHeaders"};
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	layout_fill(scene);
	classes_fill(scene);
	objects_fill(scene, false);
	scene->base = (uintptr_t)scene;
	scene->handle = (uintptr_t)scene->parked;
	scene->java_thread[0] = (uintptr_t)&scene->handle;
	for (int i = 0; i < 4; i++)
		scene->options[i] = (struct option){options[i], &scene->set[i]};
	scene->options_at = (uintptr_t)scene->options;
	scene->option_count = 4;
	scene->heap_at = (uintptr_t)&scene->heap;
	thread_memory_init(&scene->memory, "/proc", false, 0);
	*state = scene;
	return 0;
}

static int scene_free(void **state)
{
	struct scene *scene = *state;

	thread_memory_done(&scene->memory);
	free(scene);
	return 0;
}

static enum java_parked parked_read(struct scene *scene, struct java_monitor *lock)
{
	uint64_t thread = (uintptr_t)scene->java_thread;

	thread_memory_begin_copied(&scene->memory, syscall(SYS_gettid), 0, NULL, 0);
	scene->memory.calls_left = 1024;
	java_locks_find(&scene->locks, &scene->layout, &scene->memory, thread);
	thread_memory_begin_copied(&scene->memory, syscall(SYS_gettid), 0, NULL, 0);
	return java_parked_read(&scene->locks, &scene->layout, &scene->memory, thread, lock);
}

/* Expects what a thread is parked for, by a JVM of which nothing is known yet. */
static void expect(struct scene *scene, enum java_parked parked)
{
	struct java_monitor lock;

	scene->locks = (struct java_locks){.looked = false};
	assert_int_equal(parked_read(scene, &lock), parked);
	if (parked != PARKED_OWNED)
		return;
	assert_int_equal(lock.address, (uintptr_t)scene->lock);
	assert_int_equal(lock.owner, NATIVE);
	assert_string_equal(lock.class, "ReentrantLock");
	assert_int_equal(lock.holder, 0);
}

static void owned(void **state)
{
	struct scene *scene = *state;

	for (int narrow = 0; narrow < 2; narrow++) {
		objects_fill(scene, narrow);
		expect(scene, PARKED_OWNED);
	}
	streams_fill(scene);
	for (int narrow = 0; narrow < 2; narrow++) {
		objects_fill(scene, narrow);
		expect(scene, PARKED_OWNED);
	}
}

/* Since Java 21 a JavaThread may run a virtual thread, which is parked; before 17 it has no handle
 * to its thread. */
static void threads(void **state)
{
	struct scene *scene = *state;

	field(scene, JAVA_THREAD_VIRTUAL, sizeof(uint64_t));
	scene->java_thread[1] = scene->java_thread[0];
	scene->other_handle = (uintptr_t)scene->owner; /* it is parked for nothing */
	scene->java_thread[0] = (uintptr_t)&scene->other_handle;
	expect(scene, PARKED_OWNED);
	absent(scene, JAVA_THREAD_VIRTUAL);
	expect(scene, PARKED_ELSEWHERE);
	scene->layout.thread_direct = true;
	scene->java_thread[0] = (uintptr_t)scene->parked;
	expect(scene, PARKED_OWNED);
}

static void not_owned(void **state)
{
	struct scene *scene = *state;

	pointer_set(scene, scene->lock + OWNER_AT, NULL);
	expect(scene, PARKED_LATER);
	pointer_set(scene, scene->lock + 8, &scene->classes[CONDITION]);
	expect(scene, PARKED_ELSEWHERE);
	pointer_set(scene, scene->parked + BLOCKER_AT, NULL);
	expect(scene, PARKED_ELSEWHERE);
}

/* Classes are found once, and the owner is read each time. */
static void owner_changes(void **state)
{
	struct scene *scene = *state;
	struct java_monitor lock;
	uint64_t native = 2 * NATIVE;

	expect(scene, PARKED_OWNED);
	memset(&scene->classes[THREAD].symbol, 'x', sizeof(struct symbol));
	memset(&scene->classes[OWNABLE].symbol, 'x', sizeof(struct symbol));
	memcpy(scene->owner + NATIVE_AT, &native, sizeof(native));
	assert_int_equal(parked_read(scene, &lock), PARKED_OWNED);
	assert_int_equal(lock.owner, native);
}

static void class_names(void **state)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{"java/util/concurrent/locks/ReentrantReadWriteLock$FairSync",
		 "ReentrantReadWriteLock"},
		{"Gate$Sync", "Gate"},
		{"shop/Gate$MySync", "Gate$MySync"},
		{"shop/Gate", "Gate"},
		{"$Sync", "$Sync"},
		{"a/AVeryLongNameOfAClassThatIsLongerThanWhatIsShownOfIt$Sync",
		 "AVeryLongNameOfAClassThatIsLongerThanWhatIsShow"},
	};
	struct scene *scene = *state;
	struct java_monitor lock;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		symbol_set(&scene->classes[LOCK].symbol, cases[i].name);
		assert_int_equal(parked_read(scene, &lock), PARKED_OWNED);
		assert_string_equal(lock.class, cases[i].shown);
	}
}

static void collections(void **state)
{
	struct scene *scene = *state;

	scene->heap.stopped = true;
	expect(scene, PARKED_UNREAD);
	scene->heap.stopped = false;
	mark_set(scene->lock, 0x7003);
	expect(scene, PARKED_UNREAD);
	mark_set(scene->lock, 1);
	mark_set(scene->owner, 0x7003);
	expect(scene, PARKED_UNREAD);
	mark_set(scene->owner, 2);
	expect(scene, PARKED_OWNED);
}

/* A JVM whose objects can't be read is not asked again. */
static void options_that_hide(void **state)
{
	struct scene *scene = *state;

	for (int option = 2; option < 4; option++) {
		scene->set[option] = true;
		expect(scene, PARKED_ELSEWHERE);
		scene->set[option] = false;
	}
	scene->option_count = 2; /* neither is known to older versions */
	expect(scene, PARKED_OWNED);
	scene->option_count = 1;
	expect(scene, PARKED_ELSEWHERE);
	scene->option_count = 1 << 30;
	expect(scene, PARKED_ELSEWHERE);
	scene->option_count = 4;
	absent(scene, JAVA_HEAP_STOPPED);
	expect(scene, PARKED_ELSEWHERE);
}

/* Memory that makes no sense. */
static void lies(void **state)
{
	struct scene *scene = *state;
	struct row *rows = scene->thread_fields.data.rows;

	rows[1] = row_of(NAME_BLOCKER, 3);
	expect(scene, PARKED_LATER);
	rows[1] = row_of(NAME_BLOCKER, 1 << 20);
	expect(scene, PARKED_LATER);
	rows[1] = row_of(NAME_OTHER, BLOCKER_AT);
	expect(scene, PARKED_LATER);
	rows[1] = row_of(NAME_BLOCKER, BLOCKER_AT);
	rows[1].low &= 0xfffc; /* no offset */
	expect(scene, PARKED_LATER);
	rows[1] = row_of(NAME_BLOCKER, BLOCKER_AT);
	pointer_set(scene, scene->owner + 8, &scene->classes[CONDITION]); /* no thread */
	expect(scene, PARKED_UNREAD);
	pointer_set(scene, scene->owner + 8, &scene->classes[THREAD]);
	scene->classes[ROOT].super = (uintptr_t)&scene->classes[CONDITION]; /* a ring */
	pointer_set(scene, scene->lock + 8, &scene->classes[CONDITION]);
	expect(scene, PARKED_UNREAD);
	pointer_set(scene, scene->parked + BLOCKER_AT, (char *)scene + (1 << 30));
	expect(scene, PARKED_UNREAD);
	scene->classes[THREAD].pool = 0;
	expect(scene, PARKED_LATER);
	streams_fill(scene);
	memset(scene->thread_fields.data.bytes, 0xff, sizeof(scene->thread_fields.data.bytes));
	scene->thread_fields.length = INT32_MAX;
	expect(scene, PARKED_LATER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(owned, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(threads, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(not_owned, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(owner_changes, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(class_names, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(collections, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(options_that_hide, scene_make, scene_free),
		cmocka_unit_test_setup_teardown(lies, scene_make, scene_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
