/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process that claims to be a JVM, with threads, monitors, and locks of
 * java.util.concurrent: make_corpus.py has the layout. It is this process' own, at an address that
 * does not change. The first word says which JVM's fields exist. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/java_memory.h"
#include "fuzz_memory.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x200000000000ull
#define BYTES 16384u
#define FIRST_ID 100
#define IDS 4
#define READS 4096

/* Bits of the first word. */
enum {
	LIST_OF_THREADS = 1,
	OWNER_IDS = 2,
	LOCK_STACKS = 4,
	OBJECTS = 8,
	PARKED = 16,
	STREAMS = 32,
	NARROW = 64,
};

static void field(struct java_layout *layout, enum java_field field, uint64_t at)
{
	layout->at[field] = at;
	layout->reported |= 1ull << field;
}

static void layout_make(struct java_layout *layout, uint64_t kind)
{
	*layout = (struct java_layout){.reported = 0};
	field(layout, JAVA_THREAD_FIRST, BASE + 16);
	field(layout, JAVA_THREAD_NEXT, 0);
	field(layout, JAVA_THREAD_OS, 8);
	field(layout, JAVA_OS_ID, 0);
	field(layout, JAVA_THREAD_STACK, 16);
	field(layout, JAVA_THREAD_STACK_BYTES, 24);
	field(layout, JAVA_THREAD_PENDING, 32);
	field(layout, JAVA_MONITOR_OWNER, 8);
	if (kind & LIST_OF_THREADS) {
		field(layout, JAVA_THREADS, BASE + 8);
		field(layout, JAVA_LIST_COUNT, 0);
		field(layout, JAVA_LIST_THREADS, 8);
	}
	if (kind & OWNER_IDS)
		field(layout, JAVA_THREAD_OWNER_ID, 40);
	if (kind & LOCK_STACKS) {
		field(layout, JAVA_THREAD_LOCKS, 48);
		field(layout, JAVA_LOCKS_TOP, 0);
		field(layout, JAVA_LOCKS_FIRST, 8);
	}
	if (kind & OBJECTS)
		field(layout, JAVA_MONITOR_OBJECT, 0);
}

/* Has the JVM's objects be known, at made-up offsets, and its classes found. */
static void objects_find(struct java_threads *java, struct thread_memory *memory, uint64_t kind)
{
	struct java_layout *layout = &java->layout;
	const struct java_pointers pointers = {.narrow = kind & NARROW, .base = BASE};

	field(layout, JAVA_THREAD_OBJECT, 120);
	field(layout, JAVA_OBJECT_MARK, 0);
	field(layout, JAVA_OBJECT_CLASS, 8);
	field(layout, JAVA_OBJECT_NARROW, 8);
	field(layout, JAVA_CLASS_SUPER, 0);
	field(layout, JAVA_CLASS_NAME, 8);
	field(layout, JAVA_CLASS_POOL, 16);
	field(layout, kind & STREAMS ? JAVA_CLASS_STREAM : JAVA_CLASS_FIELDS, 24);
	field(layout, JAVA_CLASS_FIELD_COUNT, 32);
	field(layout, JAVA_NAME_LENGTH, 0);
	field(layout, JAVA_NAME_TEXT, 2);
	field(layout, JAVA_LIST_LENGTH, 0);
	field(layout, JAVA_BYTES_DATA, 4);
	field(layout, JAVA_SHORTS_DATA, 4);
	field(layout, JAVA_HEAP, BASE + 32);
	field(layout, JAVA_HEAP_STOPPED, 0);
	field(layout, JAVA_HEAP_COUNT, 4);
	java->locks.looked = java->locks.usable = true;
	java->locks.objects = java->locks.classes = pointers;
	java_locks_find(&java->locks, layout, memory, BASE + 0x400);
}

static void monitors_read(struct java_threads *java, struct thread_memory *memory)
{
	for (uint64_t i = 0; i < 2 * IDS; i++) {
		struct java_monitor_answer answer = {.known = true};

		memory->calls_left = READS;
		/* reads each twice in the same wait episode */
		java_monitor_read(java, memory, FIRST_ID + (int64_t)(i / 2), 1, &answer);
		must(memchr(answer.monitor.class, '\0', JAVA_CLASS_SIZE));
		if (!answer.waits)
			continue;
		must(answer.requested && answer.monitor.address);
		must(answer.monitor.owner || !answer.monitor.holder);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct java_threads java;
	static struct thread_memory memory;
	static char *base;
	uint64_t kind = 0;

	if (!base) {
		base = fuzz_memory_map((uintptr_t)BASE, BYTES);
		thread_memory_init(&memory, "/proc", false, 0);
	}
	if (!base || size > BYTES)
		return 0;
	memcpy(base, data, size);
	memset(base + size, 0, BYTES - size);
	memcpy(&kind, base, sizeof(kind));
	layout_make(&java.layout, kind);
	thread_memory_begin_copied(&memory, syscall(SYS_gettid), 0, NULL, 0);
	memory.calls_left = READS;
	java_threads_list(&java, &memory);
	must(java.count <= JAVA_THREADS_MAX);
	if (kind & PARKED)
		objects_find(&java, &memory, kind);
	monitors_read(&java, &memory);
	must(java.holders.used <= JAVA_THREADS_MAX);
	java_threads_done(&java);
	return 0;
}
