/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_service.h"
#include "base/cache.h"
#include "base/clock.h"
#include "unwind/runtime/java_layout.h"
#include "unwind/runtime/java_monitors.h"
#include "unwind/runtime/runtime_memory.h"

#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (150 * NS_PER_SECOND)
#define SWEEP_NS (10 * NS_PER_SECOND)
#define LAYOUT_OLD_NS (5 * NS_PER_SECOND) /* interval of looking for a missing layout */
#define SEGMENT_MAX 20			  /* log2 of a segment's bytes; HotSpot has 6 to 8 */
#define HEAP_BYTES_MAX (4ull << 30)
#define HOPS_MAX 8192
#define SEGMENT_FREE 0xff
#define HEAPS_CALLS 64	   /* reads of memory, for the heaps of one process */
#define LAYOUT_CALLS 4096  /* reads of memory, for the layout of a process */
#define LIST_CALLS 16384   /* reads of memory, for the threads of a process */
#define MONITOR_CALLS 1024 /* reads of memory, for one answer on a monitor */

/* A CodeHeap of HotSpot. */
struct java_heap {
	uint64_t first, end; /* range that may have code */
	uint64_t low, map;   /* begin of the blocks; begin of the segment map */
	uint32_t segment;
};

struct java_known {
	struct cache_entry entry; /* key: pid */
	uint64_t distance;
	uint64_t exports[MODULE_JAVA_EXPORTS];
	int64_t looked_ns;
	bool known; /* the layout is filled */
	uint32_t heap_count;
	struct java_heap heaps[JAVA_HEAPS_MAX];
	struct java_threads java; /* threads, and the layout */
	bool listed;		  /* threads are listed */
};

static struct cache processes;

static void process_drop(void *entry)
{
	java_threads_done(&((struct java_known *)entry)->java);
}

void java_service_clear(void)
{
	cache_done(&processes);
}

static struct java_known *process_get(const struct runtime_request *of)
{
	static int64_t swept_ns;
	struct java_known *process;
	bool added;

	if (!processes.entry_bytes)
		processes = (struct cache){.entry_bytes = sizeof(struct java_known),
					   .entries_max = PROCESSES_MAX,
					   .drop = process_drop};
	if (of->now_ns - swept_ns >= SWEEP_NS) {
		cache_sweep(&processes, of->now_ns, PROCESS_IDLE_NS);
		swept_ns = of->now_ns;
	}
	process = cache_get(&processes, (uint64_t)of->pid, of->now_ns, &added);
	if (added || process->distance != of->distance ||
	    memcmp(process->exports, of->exports.java, sizeof(process->exports)) != 0) {
		java_threads_done(&process->java);
		process->known = process->listed = false;
		process->looked_ns = 0;
		process->heap_count = 0;
		process->distance = of->distance;
		memcpy(process->exports, of->exports.java, sizeof(process->exports));
	}
	return process;
}

static void layout_read(struct java_known *process, const struct runtime_request *of,
			struct thread_memory *memory)
{
	memory->calls_left = LAYOUT_CALLS;
	process->known =
		java_layout_get(&process->java.layout, of->exports.java, of->distance, memory);
	process->looked_ns = of->now_ns;
}

static bool heap_read(const struct java_layout *layout, struct thread_memory *memory,
		      uint64_t address, struct java_heap *heap)
{
	uint64_t space = address + layout->at[JAVA_HEAP_MEMORY];
	uint64_t map = address + layout->at[JAVA_HEAP_MAP];
	int32_t segment;

	if (!java_word(memory, space + layout->at[JAVA_SPACE_FIRST], &heap->first) ||
	    !java_word(memory, space + layout->at[JAVA_SPACE_END], &heap->end) ||
	    !java_word(memory, space + layout->at[JAVA_SPACE_LOW], &heap->low) ||
	    !java_word(memory, map + layout->at[JAVA_SPACE_LOW], &heap->map) ||
	    !java_int(memory, address + layout->at[JAVA_HEAP_SEGMENT], &segment))
		return false;
	heap->segment = (uint32_t)segment;
	return heap->first && heap->end > heap->first && heap->low >= heap->first &&
	       heap->low < heap->end && heap->end - heap->first <= HEAP_BYTES_MAX && segment > 0 &&
	       segment <= SEGMENT_MAX;
}

static void heaps_read(struct java_known *process, struct thread_memory *memory)
{
	const struct java_layout *layout = &process->java.layout;
	uint64_t array, elements = layout->at[JAVA_CACHE_HEAP], heap;
	int32_t count = 1;

	process->heap_count = 0;
	if (java_layout_has(layout, JAVA_CACHE_HEAPS) &&
	    (!java_word(memory, layout->at[JAVA_CACHE_HEAPS], &array) ||
	     !java_int(memory, array + layout->at[JAVA_ARRAY_COUNT], &count) ||
	     !java_word(memory, array + layout->at[JAVA_ARRAY_DATA], &elements)))
		return;
	for (int32_t i = 0; i < count && i < JAVA_HEAPS_MAX; i++)
		if (java_word(memory, elements + (uint64_t)i * sizeof(heap), &heap) &&
		    heap_read(layout, memory, heap, &process->heaps[process->heap_count]))
			process->heap_count++;
}

/* Returns the CodeBlob that has the address, or 0. */
static uint64_t blob_find(const struct java_layout *layout, const struct java_heap *heap,
			  struct thread_memory *memory, uint64_t address)
{
	uint64_t at, block;
	int32_t bytes;
	uint8_t hop, used;

	if (address < heap->low)
		return 0;
	at = (address - heap->low) >> heap->segment;
	for (int i = 0; i < HOPS_MAX; i++) {
		if (thread_memory_read_code(memory, heap->map + at, &hop, sizeof(hop)) ||
		    hop == SEGMENT_FREE || hop > at)
			return 0;
		if (!hop)
			break;
		at -= hop;
	}
	block = heap->low + (at << heap->segment);
	if (hop ||
	    thread_memory_read_code(
		    memory, block + layout->at[JAVA_BLOCK_HEADER] + layout->at[JAVA_HEADER_USED],
		    &used, sizeof(used)) ||
	    !used)
		return 0;
	block += layout->block_bytes;
	if (!java_int(memory, block + layout->at[JAVA_BLOB_BYTES], &bytes) || bytes <= 0 ||
	    address < block || address - block >= (uint64_t)bytes)
		return 0;
	return block;
}

static bool blob_incomplete(const struct java_layout *layout, struct thread_memory *memory,
			    uint64_t blob, uint64_t address)
{
	int32_t complete, offset;
	uint64_t code;

	if (!java_layout_has(layout, JAVA_BLOB_COMPLETE) ||
	    !java_int(memory, blob + layout->at[JAVA_BLOB_COMPLETE], &complete))
		return false;
	if (layout->complete_short)
		complete = (int16_t)complete;
	if (java_layout_has(layout, JAVA_BLOB_CODE)) {
		if (!java_word(memory, blob + layout->at[JAVA_BLOB_CODE], &code))
			return false;
	} else if (java_layout_has(layout, JAVA_BLOB_CODE_OFFSET) &&
		   java_int(memory, blob + layout->at[JAVA_BLOB_CODE_OFFSET], &offset)) {
		code = blob + (uint64_t)(int64_t)offset;
	} else {
		return false;
	}
	return complete > 0 && address >= code && address - code < (uint64_t)complete;
}

/* Returns JAVA_CODE_* and the words of the frame. */
static uint64_t code_read(const struct java_layout *layout, const struct java_heap *heap,
			  struct thread_memory *memory, uint64_t address)
{
	uint64_t blob = blob_find(layout, heap, memory, address), name;
	char text[sizeof("Interpreter") + 1];
	int32_t words;

	if (!blob || !java_int(memory, blob + layout->at[JAVA_BLOB_FRAME], &words))
		return 0;
	/* return address and frame pointer at least */
	if (words >= 2 && words <= (int32_t)JAVA_FRAME_WORDS_MAX)
		return JAVA_CODE_FOUND | (uint32_t)words |
		       (blob_incomplete(layout, memory, blob, address) ? JAVA_CODE_INCOMPLETE : 0);
	if (java_word(memory, blob + layout->at[JAVA_BLOB_NAME], &name) &&
	    java_text(memory, name, text, sizeof(text)) && !strcmp(text, "Interpreter"))
		return JAVA_CODE_FOUND | JAVA_CODE_INTERPRETER;
	return JAVA_CODE_FOUND;
}

/* Reads what has not been found out before, or may have changed. */
static void process_renew(struct java_known *process, const struct runtime_request *of,
			  struct thread_memory *memory)
{
	if (!process->known &&
	    (!process->looked_ns || (of->anew && of->now_ns - process->looked_ns >= LAYOUT_OLD_NS)))
		layout_read(process, of, memory);
	if (process->known && (of->anew || !process->heap_count)) {
		memory->calls_left = HEAPS_CALLS;
		heaps_read(process, memory);
	}
}

static uint64_t address_look(const struct java_known *process, struct thread_memory *memory,
			     uint64_t address)
{
	for (uint32_t i = 0; i < process->heap_count; i++)
		if (address >= process->heaps[i].first && address < process->heaps[i].end)
			return code_read(&process->java.layout, &process->heaps[i], memory,
					 address);
	return 0;
}

size_t java_code_answer(const struct runtime_request *of, const char *addresses,
			struct thread_memory *memory, char *to)
{
	static struct java_code_answer answer;
	const size_t head = offsetof(struct java_code_answer, codes);
	const uint32_t calls =
		of->calls_left < JAVA_CODE_CALLS_MAX ? of->calls_left : JAVA_CODE_CALLS_MAX;
	struct java_known *process = process_get(of);

	memset(&answer, 0, head);
	process_renew(process, of, memory);
	answer.known = process->known;
	answer.heap_count = process->known ? process->heap_count : 0;
	for (uint32_t i = 0; i < answer.heap_count; i++)
		answer.heaps[i] =
			(struct java_range){process->heaps[i].first, process->heaps[i].end};
	memory->calls_left = calls;
	for (; answer.count < of->count && answer.count < JAVA_CODES_MAX; answer.count++) {
		uint64_t address;

		memcpy(&address, addresses + answer.count * sizeof(address), sizeof(address));
		answer.codes[answer.count] = address_look(process, memory, address);
	}
	answer.calls_used = calls - memory->calls_left;
	memcpy(to, &answer, head + answer.count * sizeof(answer.codes[0]));
	return head + answer.count * sizeof(answer.codes[0]);
}

size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, char *to)
{
	struct java_known *process = process_get(of);
	struct java_layout_answer answer = {0};

	layout_read(process, of, memory);
	answer.has_monitors = process->known && java_layout_has_monitors(&process->java.layout);
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}

size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory, char *to)
{
	struct java_known *process = process_get(of);
	struct java_monitor_answer answer;

	memset(&answer, 0, sizeof(answer));
	answer.known = process->known && java_layout_has_monitors(&process->java.layout);
	if (answer.known && (of->anew || !process->listed)) {
		memory->calls_left = LIST_CALLS;
		process->listed = java_threads_list(&process->java, memory);
		runtime_memory_again(memory);
	}
	memory->calls_left = MONITOR_CALLS;
	if (answer.known)
		answer.waits = java_monitor_read(&process->java, memory, (int64_t)of->id,
						 of->episode, &answer.requested, &answer.monitor);
	memcpy(to, &answer, sizeof(answer));
	return sizeof(answer);
}
