/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of Java from memory made up by the test, as HotSpot lays it out and describes it: its own.
 * tests/live/case_java.py tests a real JVM. */
#include "unit.h"

#include <sys/syscall.h>

#include "base/clock.h"
#include "unwind/runtime/java_frames.h"
#include "unwind/runtime/java_memory.h"
#include "unwind/runtime/runtime_service.h"
#include "unwind/walker.h"

#define DISTANCE 4096 /* distance between addresses in memory and in the file */
#define SEGMENT 7
#define SEGMENTS 1024
#define ROWS 32

/* VMStructEntry and VMTypeEntry of vmStructs.hpp */
struct field_entry {
	const char *class, *name, *type;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type_entry {
	const char *name, *super;
	int32_t is_oop, is_integer, is_unsigned;
	uint64_t bytes;
};

/* The classes as in OpenJDK 17, reduced to what is read. */
struct virtual_space {
	uint64_t low_boundary, high_boundary, low, high;
};

struct code_heap {
	void *vtable;
	struct virtual_space memory, map;
	int32_t segment;
};

struct heap_block {
	uint64_t length;
	bool used;
};

struct code_blob {
	int32_t bytes, complete, frame;
	int16_t complete_short;
	int32_t code_offset;
	uint64_t code;
	const char *name;
};

struct growable_array {
	int32_t count, max;
	struct code_heap **data;
};

/* A thread that is its own JVM. */
struct scene {
	struct field_entry fields[ROWS];
	struct type_entry types[4];
	uint64_t exported[MODULE_JAVA_EXPORTS];
	struct growable_array array, *heaps;
	struct code_heap heap, *heap_list[1];
	uint8_t map[SEGMENTS];
	uint8_t code[SEGMENTS << SEGMENT];
	struct module module;
	struct module_table modules;
	struct mapping mapping;
	struct process_maps maps;
	struct thread_memory memory;
	struct java_frames *java;
	struct stack_thread thread;
};

#define OFFSET(of, member) 0, offsetof(of, member), NULL

static void fields_fill(struct scene *scene)
{
	const struct field_entry fields[] = {
		{"Klass", "_name", "Symbol*", 0, 24, NULL},
		{"CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, &scene->heaps},
		{"GrowableArrayBase", "_len", "int", OFFSET(struct growable_array, count)},
		{"GrowableArray<int>", "_data", "int*", OFFSET(struct growable_array, data)},
		{"CodeHeap", "_memory", "VirtualSpace", OFFSET(struct code_heap, memory)},
		{"CodeHeap", "_segmap", "VirtualSpace", OFFSET(struct code_heap, map)},
		{"CodeHeap", "_log2_segment_size", "int", OFFSET(struct code_heap, segment)},
		{"VirtualSpace", "_low", "char*", OFFSET(struct virtual_space, low)},
		{"VirtualSpace", "_low_boundary", "char*",
		 OFFSET(struct virtual_space, low_boundary)},
		{"VirtualSpace", "_high_boundary", "char*",
		 OFFSET(struct virtual_space, high_boundary)},
		{"HeapBlock", "_header", "HeapBlock::Header", 0, 0, NULL},
		{"HeapBlock::Header", "_used", "bool", OFFSET(struct heap_block, used)},
		{"CodeBlob", "_name", "const char*", OFFSET(struct code_blob, name)},
		{"CodeBlob", "_size", "int", OFFSET(struct code_blob, bytes)},
		{"CodeBlob", "_frame_size", "int", OFFSET(struct code_blob, frame)},
		{"CodeBlob", "_frame_complete_offset", "int", OFFSET(struct code_blob, complete)},
		{"CodeBlob", "_code_begin", "address", OFFSET(struct code_blob, code)},
	};

	memcpy(scene->fields, fields, sizeof(fields));
}

static struct field_entry *field_of(struct scene *scene, const char *class, const char *name)
{
	for (struct field_entry *field = scene->fields; field->class; field++)
		if (!strcmp(field->class, class) && !strcmp(field->name, name))
			return field;
	fail();
	return NULL;
}

static void exports_fill(struct scene *scene)
{
	uint64_t *exported = scene->exported;

	exported[MODULE_JAVA_FIELDS] = (uintptr_t)scene->fields;
	exported[MODULE_JAVA_FIELD_STRIDE] = sizeof(struct field_entry);
	exported[MODULE_JAVA_FIELD_CLASS] = offsetof(struct field_entry, class);
	exported[MODULE_JAVA_FIELD_NAME] = offsetof(struct field_entry, name);
	exported[MODULE_JAVA_FIELD_TYPE] = offsetof(struct field_entry, type);
	exported[MODULE_JAVA_FIELD_OFFSET] = offsetof(struct field_entry, offset);
	exported[MODULE_JAVA_FIELD_ADDRESS] = offsetof(struct field_entry, address);
	exported[MODULE_JAVA_TYPES] = (uintptr_t)scene->types;
	exported[MODULE_JAVA_TYPE_STRIDE] = sizeof(struct type_entry);
	exported[MODULE_JAVA_TYPE_NAME] = offsetof(struct type_entry, name);
	exported[MODULE_JAVA_TYPE_BYTES] = offsetof(struct type_entry, bytes);
	for (int i = 0; i < MODULE_JAVA_EXPORTS; i++)
		scene->module.exports.java[i] = (uintptr_t)&exported[i] - DISTANCE;
}

static void scene_make(struct scene *scene)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	memset(scene, 0, sizeof(*scene));
	fields_fill(scene);
	scene->types[0] = (struct type_entry){.name = "Klass", .bytes = 200};
	scene->types[1] = (struct type_entry){.name = "HeapBlock", .bytes = 16};
	scene->module = (struct module){.fd = -1, .has_exports = true};
	scene->module.elf.segment_count = 1;
	scene->module.elf.segments[0] = (struct elf_segment){0, 4096, 0, 4096, true};
	exports_fill(scene);
	scene->heaps = &scene->array;
	scene->array = (struct growable_array){1, 1, scene->heap_list};
	scene->heap_list[0] = &scene->heap;
	scene->heap.memory.low_boundary = scene->heap.memory.low = (uintptr_t)scene->code;
	scene->heap.memory.high_boundary = (uintptr_t)(scene->code + sizeof(scene->code));
	scene->heap.map.low = (uintptr_t)scene->map;
	scene->heap.segment = SEGMENT;
	memset(scene->map, 0xff, sizeof(scene->map));
	scene->modules.modules[0] = &scene->module;
	scene->modules.count = 1;
	scene->mapping = (struct mapping){.start = DISTANCE,
					  .end = DISTANCE + 4096,
					  .looked_at = true,
					  .path = (char *)"/usr/lib/jvm/x/libjvm.so"};
	scene->thread = (struct stack_thread){tid, tid, 1, clock_monotonic_ns(), 0};
	scene->maps = (struct process_maps){
		.mappings = &scene->mapping, .count = 1, .read_ns = scene->thread.now_ns};
	thread_memory_init(&scene->memory, "/proc", false, 65536);
	runtime_service_clear();
	scene->java = java_frames_new("/proc", &scene->modules, NULL);
	scene->java->reader.service = runtime_service;
}

static void scene_done(struct scene *scene)
{
	java_frames_clear(scene->java);
	free(scene->java);
	thread_memory_done(&scene->memory);
}

/* Makes code in that number of segments from the first on, as CodeHeap::mark_segmap_as_used() does.
 * Returns its address, 256 bytes after the block's. */
static uint64_t blob_make(struct scene *scene, size_t first, size_t count, const char *name,
			  int32_t frame)
{
	uint8_t *at = scene->code + (first << SEGMENT);
	const struct heap_block block = {count, true};
	struct code_blob blob = {.bytes = (int32_t)(count << SEGMENT) - 16,
				 .complete = 12,
				 .complete_short = 12,
				 .frame = frame,
				 .name = name};

	blob.code = (uintptr_t)at + 256;
	blob.code_offset = 240;
	memcpy(at, &block, sizeof(block));
	memcpy(at + 16, &blob, sizeof(blob));
	for (size_t i = 0; i < count; i++)
		scene->map[first + i] = (uint8_t)(i < 0xfe ? i : (i - 1) % 0xfd + 1);
	return blob.code;
}

static bool find(struct scene *scene, uint64_t address, struct java_code *code)
{
	thread_memory_begin(&scene->memory, scene->thread.tid, (uintptr_t)scene->map);
	return java_frames_find(scene->java, &scene->thread, &scene->maps, &scene->memory, address,
				code);
}

/* Invalid data of a JVM, each of which makes the code unknown. */
enum lie {
	LIE_STRIDE_NONE,
	LIE_STRIDE_LARGE,
	LIE_COLUMN_OUTSIDE,
	LIE_TABLE_NOWHERE,
	LIE_NAME_NOWHERE,
	LIE_FIELD_MISSING,
	LIE_OFFSET_LARGE,
	LIE_TYPE_MISSING,
	LIE_TYPE_LARGE,
	LIE_NO_HEAPS,
	LIE_HEAPS_NOWHERE,
	LIE_HEAP_BACKWARDS,
	LIE_SEGMENT_LARGE,
	LIE_MAP_NOWHERE,
	LIE_HOP_BEFORE,
	LIE_BLOCK_FREE,
	LIE_BLOB_SHORT,
	LIE_COUNT,
};

static void lie_tell(struct scene *scene, enum lie lie)
{
	struct code_blob blob;

	switch (lie) {
	case LIE_STRIDE_NONE:
		scene->exported[MODULE_JAVA_FIELD_STRIDE] = 0;
		break;
	case LIE_STRIDE_LARGE:
		scene->exported[MODULE_JAVA_FIELD_STRIDE] = UINT64_MAX;
		break;
	case LIE_COLUMN_OUTSIDE:
		scene->exported[MODULE_JAVA_FIELD_NAME] = 41;
		break;
	case LIE_TABLE_NOWHERE:
		scene->exported[MODULE_JAVA_FIELDS] = UINT64_MAX - 8;
		break;
	case LIE_NAME_NOWHERE:
		memset(&scene->fields[3].name, 0xff, 8);
		break;
	case LIE_FIELD_MISSING:
		field_of(scene, "CodeBlob", "_frame_size")->name = "_size";
		break;
	case LIE_OFFSET_LARGE:
		field_of(scene, "CodeBlob", "_size")->offset = 1u << 30;
		break;
	case LIE_TYPE_MISSING:
		scene->types[1].name = "Block";
		break;
	case LIE_TYPE_LARGE:
		scene->types[1].bytes = 1u << 20;
		break;
	case LIE_NO_HEAPS:
		scene->array.count = -1;
		break;
	case LIE_HEAPS_NOWHERE:
		scene->heaps = NULL;
		break;
	case LIE_HEAP_BACKWARDS:
		scene->heap.memory.high_boundary = 4096;
		break;
	case LIE_SEGMENT_LARGE:
		scene->heap.segment = 64;
		break;
	case LIE_MAP_NOWHERE:
		scene->heap.map.low = 8192;
		break;
	case LIE_HOP_BEFORE:
		scene->map[2] = 3;
		break;
	case LIE_BLOCK_FREE:
		memset(scene->code + offsetof(struct heap_block, used), 0, 1);
		break;
	case LIE_BLOB_SHORT:
		memcpy(&blob, scene->code + 16, sizeof(blob));
		blob.bytes = 200;
		memcpy(scene->code + 16, &blob, sizeof(blob));
		break;
	case LIE_COUNT:
		break;
	}
}

static struct scene scene;

static void frames_are_found(void **state)
{
	uint64_t small, large, interpreter, stub;
	struct java_code code;

	scene_make(&scene);
	small = blob_make(&scene, 0, 4, "nmethod", 6);
	large = blob_make(&scene, 4, 900, "nmethod", 1000);
	interpreter = blob_make(&scene, 904, 100, "Interpreter", 0);
	stub = blob_make(&scene, 1004, 10, "StubRoutines (1)", 0);
	assert_true(find(&scene, small + 12, &code));
	assert_int_equal(code.frame_words, 6);
	assert_false(code.incomplete || code.interpreter);
	assert_true(find(&scene, small + 11, &code));
	assert_int_equal(code.frame_words, 6);
	assert_true(code.incomplete);
	assert_true(find(&scene, large + (899u << SEGMENT) - 256, &code));
	assert_int_equal(code.frame_words, 1000);
	assert_true(find(&scene, interpreter + 5000, &code));
	assert_true(code.interpreter);
	assert_int_equal(code.frame_words, 0);
	assert_true(find(&scene, stub, &code));
	assert_false(code.interpreter);
	assert_int_equal(code.frame_words, 0);
	/* the second lookup equals the first */
	assert_true(find(&scene, small + 11, &code));
	assert_true(code.incomplete && code.frame_words == 6);
	/* before the heap, after the last block, after the heap */
	assert_false(find(&scene, (uintptr_t)scene.code - 1, &code));
	assert_false(find(&scene, (uintptr_t)scene.code + (1020u << SEGMENT), &code));
	assert_false(find(&scene, (uintptr_t)scene.code + sizeof(scene.code), &code));
	scene_done(&scene);
}

/* Names and types of other versions: 8, 11, 25. */
static void versions_are_told(void **state)
{
	struct java_code code;
	uint64_t address;

	scene_make(&scene);
	field_of(&scene, "GrowableArrayBase", "_len")->class = "GenericGrowableArray";
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	assert_true(find(&scene, address, &code));
	scene_done(&scene);

	scene_make(&scene);
	*field_of(&scene, "CodeCache", "_heaps") =
		(struct field_entry){"CodeCache", "_heap", "CodeHeap*", 1, 0, scene.heap_list};
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	assert_true(find(&scene, address, &code));
	scene_done(&scene);

	scene_make(&scene);
	*field_of(&scene, "CodeBlob", "_code_begin") = (struct field_entry){
		"CodeBlob", "_code_offset", "int", 0, offsetof(struct code_blob, code_offset),
		NULL};
	*field_of(&scene, "CodeBlob", "_frame_complete_offset") =
		(struct field_entry){"CodeBlob",
				     "_frame_complete_offset",
				     "int16_t",
				     0,
				     offsetof(struct code_blob, complete_short),
				     NULL};
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	assert_true(find(&scene, address + 11, &code) && code.incomplete);
	assert_true(find(&scene, address + 12, &code) && !code.incomplete);
	scene_done(&scene);
}

static void lies_are_left(void **state)
{
	struct java_code code;
	uint64_t address;

	for (enum lie lie = 0; lie <= LIE_COUNT; lie++) {
		scene_make(&scene);
		address = blob_make(&scene, 0, 4, "nmethod", 6);
		lie_tell(&scene, lie);
		if (find(&scene, address, &code) != (lie == LIE_COUNT))
			fail_msg("lie %d", lie);
		scene_done(&scene);
	}
}

/* A table without an end is given up, and not read again while the maps are the same. */
static void endless_table_ends(void **state)
{
	struct java_code code;
	uint64_t address;

	scene_make(&scene);
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	for (int i = 0; i < ROWS; i++)
		scene.fields[i].class = "Klass";
	assert_false(find(&scene, address, &code));
	fields_fill(&scene);
	assert_false(find(&scene, address, &code));
	scene.thread.now_ns = scene.maps.read_ns += 6 * NS_PER_SECOND;
	memset(&scene.fields[17], 0, sizeof(scene.fields[17]));
	assert_true(find(&scene, address, &code));
	scene_done(&scene);
}

/* Code that was compiled anew is seen when cached data gets old. */
static void code_is_looked_up_again(void **state)
{
	struct java_code code;
	uint64_t address;

	scene_make(&scene);
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	assert_true(find(&scene, address, &code) && code.frame_words == 6);
	blob_make(&scene, 0, 4, "nmethod", 8);
	scene.thread.now_ns = scene.maps.read_ns += 6 * NS_PER_SECOND;
	assert_true(find(&scene, address, &code) && code.frame_words == 8);
	scene_done(&scene);
}

#if defined(__x86_64__)
#define FP 6

/* Unwinds from the code with a return address in that word of the stack, and below it the saved
 * frame pointer, if any. */
static void left_by(struct scene *of, struct unwinder *unwinder, uint64_t ip, bool exact,
		    uint32_t word)
{
	static uint64_t stack[64];
	static const uint8_t call[] = {0xe8, 0, 0, 0, 0};
	uint64_t caller = (uintptr_t)(of->code + (100 << SEGMENT)), fp;
	struct walker walker = {
		.unwinder = unwinder,
		.thread = &of->thread,
		.machine = machine_of(false),
		.maps = &of->maps,
		.registers = {.ip = ip, .sp = (uintptr_t)stack},
		.exact = exact,
	};

	memcpy(of->code + (100 << SEGMENT) - sizeof(call), call, sizeof(call));
	memset(stack, 0, sizeof(stack));
	stack[word] = caller;
	if (word)
		stack[word - 1] = 0x12345678;
	user_register_set(&walker.registers, FP, 0x56789abc);
	thread_memory_begin(&unwinder->memory, of->thread.tid, (uintptr_t)stack);
	assert_int_equal(walker_leave_jit(&walker), 0);
	assert_int_equal(walker.registers.ip, caller);
	assert_int_equal(walker.registers.sp, (uintptr_t)(stack + word + 1));
	assert_true(user_register_get(&walker.registers, FP, &fp));
	assert_int_equal(fp, word ? 0x12345678 : 0x56789abc);
}

/* A thread on a CPU is unwound from its frame: the position says how much of the frame there may
 * be, and the stack how much there is. */
static void frames_are_left(void **state)
{
	struct unwinder unwinder;
	struct mapping mappings[2];
	uint64_t code;

	scene_make(&scene);
	code = blob_make(&scene, 0, 4, "nmethod", 6);
	mappings[0] = scene.mapping;
	mappings[1] = (struct mapping){.start = (uintptr_t)scene.code,
				       .end = (uintptr_t)(scene.code + sizeof(scene.code)),
				       .looked_at = true,
				       .jit = true,
				       .module = MODULE_NONE};
	scene.maps.mappings = mappings;
	scene.maps.count = 2;
	unwinder_init(&unwinder, "/proc", &scene.modules, NULL, 65536);
	unwinder.java->reader.service = runtime_service;
	left_by(&scene, &unwinder, code + 20, true, 5);
	left_by(&scene, &unwinder, code + 20, false, 5);
	/* the frame is not complete: at its first instruction, after push %rbp, and at the last
	 * one */
	left_by(&scene, &unwinder, code, true, 0);
	left_by(&scene, &unwinder, code + 4, true, 1);
	left_by(&scene, &unwinder, code + 11, true, 5);
	/* the frame is removed: at ret, at pop %rbp */
	left_by(&scene, &unwinder, code + 100, true, 0);
	memset(scene.code + (code + 99 - (uintptr_t)scene.code), 0x5d, 1);
	left_by(&scene, &unwinder, code + 99, true, 1);
	unwinder_done(&unwinder);
	scene_done(&scene);
}
#endif

/* Limit on libraries: a process may name any number of files so. */
static void few_libraries_are_looked_at(void **state)
{
	static struct mapping mappings[100];
	struct java_code code;
	uint64_t address;

	scene_make(&scene);
	address = blob_make(&scene, 0, 4, "nmethod", 6);
	for (size_t i = 0; i < 100; i++)
		mappings[i] = (struct mapping){.start = (i + 1) << 32,
					       .end = ((i + 1) << 32) + 4096,
					       .module = MODULE_NONE,
					       .path = scene.mapping.path};
	scene.maps.mappings = mappings;
	scene.maps.count = 100;
	scene.modules.open_max = 2;
	assert_false(find(&scene, address, &code));
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(mappings[i].looked_at, i < 8);
	/* memory without a file makes one module, which is not the scene's */
	assert_int_equal(scene.modules.count, 2);
	scene.modules.modules[0] = scene.modules.modules[1];
	scene.modules.count = 1;
	module_table_clear(&scene.modules);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_found),
		cmocka_unit_test(versions_are_told),
		cmocka_unit_test(lies_are_left),
		cmocka_unit_test(endless_table_ends),
		cmocka_unit_test(code_is_looked_up_again),
		cmocka_unit_test(few_libraries_are_looked_at),
#if defined(__x86_64__)
		cmocka_unit_test(frames_are_left),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
