/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fake_java/libjvm.so THREADS NAP_MS: exports the symbols of HotSpot. Its tables are good, but the
 * map of its code leads back by one segment at a time, over the whole of a large heap: a lookup of
 * an address takes the longest time, and finds nothing. Each thread sleeps at another address of
 * that code each time. Prints "ready TID" of its first thread and runs until standard input ends.
 *
 * The tables: src/unwind/runtime/java_memory.c. If started by root, it gives up its rights.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rights.h"

#define THREADS_MAX 2000
#define STACK_BYTES (64 << 10)
#define SEGMENT 4 /* log2 of its bytes */
#define SEGMENTS (1u << 20)
#define SITE_BYTES (1u << SEGMENT)

struct virtual_space {
	char *low_boundary, *high_boundary, *low;
};

struct code_heap {
	struct virtual_space memory, map;
	int32_t segment;
};

struct growable_array {
	int32_t count;
	struct code_heap **data;
};

struct field_entry {
	const char *class, *name, *type;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type_entry {
	const char *name;
	uint64_t bytes;
};

static struct code_heap heap, *heap_list[1] = {&heap};
static struct growable_array array = {1, heap_list}, *heaps = &array;

#define FIELD(class, name, of, member)                                   \
	{                                                                \
		class, name, "int", 0, offsetof(struct of, member), NULL \
	}

static struct field_entry fields[] = {
	{"CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", 1, 0, &heaps},
	FIELD("GrowableArrayBase", "_len", growable_array, count),
	FIELD("GrowableArray<int>", "_data", growable_array, data),
	FIELD("CodeHeap", "_memory", code_heap, memory),
	FIELD("CodeHeap", "_segmap", code_heap, map),
	FIELD("CodeHeap", "_log2_segment_size", code_heap, segment),
	FIELD("VirtualSpace", "_low", virtual_space, low),
	FIELD("VirtualSpace", "_low_boundary", virtual_space, low_boundary),
	FIELD("VirtualSpace", "_high_boundary", virtual_space, high_boundary),
	{"HeapBlock", "_header", "HeapBlock::Header", 0, 0, NULL},
	{"HeapBlock::Header", "_used", "bool", 0, 8, NULL},
	{"CodeBlob", "_name", "const char*", 0, 0, NULL},
	{"CodeBlob", "_size", "int", 0, 8, NULL},
	{"CodeBlob", "_frame_size", "int", 0, 12, NULL},
	{NULL, NULL, NULL, 0, 0, NULL},
};

static struct type_entry types[] = {{"HeapBlock", 16}, {NULL, 0}};

struct field_entry *gHotSpotVMStructs = fields;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct field_entry);
uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct field_entry, class);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct field_entry, name);
uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct field_entry, type);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct field_entry, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct field_entry, address);
struct type_entry *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type_entry);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct type_entry, name);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct type_entry, bytes);

/* nanosleep(2), and return */
#if defined(__x86_64__)
static const uint8_t site[] = {0xb8, 0x23, 0, 0, 0, 0x0f, 0x05, 0xc3};
#elif defined(__aarch64__)
static const uint32_t site[] = {0xd2800ca8, 0xd4000001, 0xd65f03c0};
#endif

static struct timespec nap;

static void *area_map(size_t bytes, int protection)
{
	void *area = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		exit(EXIT_FAILURE);
	return area;
}

static void heap_make(void)
{
	size_t bytes = (size_t)SEGMENTS * SITE_BYTES;
	char *code = area_map(bytes, PROT_READ | PROT_WRITE);
	char *map = area_map(SEGMENTS, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < SEGMENTS; i++)
		memcpy(code + i * SITE_BYTES, site, sizeof(site));
	if (mprotect(code, bytes, PROT_READ | PROT_EXEC))
		exit(EXIT_FAILURE);
	__builtin___clear_cache(code, code + bytes);
	memset(map, 1, SEGMENTS);
	heap = (struct code_heap){{code, code + bytes, code}, {map, map + SEGMENTS, map}, SEGMENT};
}

static void *thread_run(void *of)
{
	unsigned int seed = (unsigned int)(uintptr_t)of;

	for (;;) {
		char *at = heap.memory.low + (size_t)rand_r(&seed) % SEGMENTS * SITE_BYTES;
		long (*sleeps)(const struct timespec *, struct timespec *);

		memcpy(&sleeps, &at, sizeof(sleeps));
		sleeps(&nap, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[1]) : 0, nap_ms;
	pthread_attr_t small;
	pthread_t thread;
	char byte;

	if (count < 1 || count > THREADS_MAX)
		return 2;
	nap_ms = atol(argv[2]);
	nap = (struct timespec){nap_ms / 1000, nap_ms % 1000 * 1000000};
	rights_drop();
	heap_make();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	for (long i = 1; i <= count; i++)
		if (pthread_create(&thread, &small, thread_run, (void *)(uintptr_t)i))
			return EXIT_FAILURE;
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
