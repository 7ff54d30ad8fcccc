/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_frames.h"
#include "base/clock.h"
#include "base/index.h"
#include "unwind/runtime/java_layout.h"

#include <string.h>

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (10 * NS_PER_SECOND)
#define PROCESS_OLD_NS (5 * NS_PER_SECOND) /* code comes and goes */
#define LIBRARIES_MAX 8 /* mappings of files named libjvm.so that are looked at */
#define HEAPS_MAX 8
#define SEGMENT_MAX 20 /* log2 of its bytes; HotSpot has 6 to 8 */
#define HEAP_BYTES_MAX (4ull << 30)
#define HOPS_MAX 8192
#define FRAME_WORDS_MAX (1u << 17)
#define PLACES_KEPT_MAX 65536
#define LAYOUT_CALLS 4096 /* of reading memory, for one process; */
#define HEAPS_CALLS 64
#define PLACES_CALLS 16384 /* for all that is looked up until it gets old */
#define SEGMENT_FREE 0xff

/* CodeHeap */
struct java_heap {
	uint64_t first, end; /* that may have code */
	uint64_t low, map;   /* of blocks; of the segment map */
	uint32_t segment;
};

struct java_process {
	struct cache_entry entry; /* key: pid */
	int64_t maps_read_ns;	  /* of those that it was looked for in */
	int64_t looked_ns, kept_ns;
	const struct module *module; /* libjvm.so, and how far from its addresses it lies: */
	uint64_t distance;
	bool known; /* layout is filled */
	struct java_layout layout;
	uint32_t heap_count;
	struct java_heap heaps[HEAPS_MAX];
	struct index places; /* addresses to words of java_code */
	unsigned int calls_left;
};

static void process_drop(void *entry)
{
	index_clear(&((struct java_process *)entry)->places);
}

void java_frames_init(struct java_frames *java, const char *proc_root, struct module_table *modules)
{
	*java = (struct java_frames){
		.proc_root = proc_root,
		.modules = modules,
		.processes = {.entry_bytes = sizeof(struct java_process),
			      .entries_max = PROCESSES_MAX,
			      .drop = process_drop},
	};
}

void java_frames_clear(struct java_frames *java)
{
	cache_done(&java->processes);
}

void java_frames_sweep(struct java_frames *java, int64_t now_ns)
{
	cache_sweep(&java->processes, now_ns, PROCESS_IDLE_NS);
}

static const struct module *hotspot_find(const struct java_frames *java,
					 const struct stack_thread *thread,
					 struct process_maps *maps, struct thread_memory *memory,
					 uint64_t *distance)
{
	unsigned int left = LIBRARIES_MAX;

	for (size_t i = 0; i < maps->count && left; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		const struct runtime_exports *exports;
		struct module *module;
		uint64_t address;

		if (!mapping->path || !strstr(mapping->path, "/libjvm.so"))
			continue;
		left--;
		mapping = mapping_find(maps, java->proc_root, thread, java->modules, memory,
				       mapping->start);
		if (!mapping || mapping->jit || mapping->module == MODULE_NONE)
			continue;
		module = java->modules->modules[mapping->module];
		exports = module_read_exports(&module->read, java->modules->parser, &module->elf);
		if (!exports->java[MODULE_JAVA_TYPES] ||
		    !elf_address_of(&module->elf, mapping->offset, &address))
			continue;
		*distance = mapping->start - address;
		return module;
	}
	return NULL;
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

static void heaps_read(struct java_process *process, struct thread_memory *memory)
{
	const struct java_layout *layout = &process->layout;
	uint64_t array, elements = layout->at[JAVA_CACHE_HEAP], heap;
	int32_t count = 1;

	process->heap_count = 0;
	if (java_layout_has(layout, JAVA_CACHE_HEAPS) &&
	    (!java_word(memory, layout->at[JAVA_CACHE_HEAPS], &array) ||
	     !java_int(memory, array + layout->at[JAVA_ARRAY_COUNT], &count) ||
	     !java_word(memory, array + layout->at[JAVA_ARRAY_DATA], &elements)))
		return;
	for (int32_t i = 0; i < count && i < HEAPS_MAX; i++)
		if (java_word(memory, elements + (uint64_t)i * sizeof(heap), &heap) &&
		    heap_read(layout, memory, heap, &process->heaps[process->heap_count]))
			process->heap_count++;
}

/* The process as it is since its maps were read. */
static void process_renew(struct java_frames *java, struct java_process *process,
			  const struct stack_thread *thread, struct process_maps *maps,
			  struct thread_memory *memory)
{
	unsigned int calls_left = memory->calls_left;
	uint64_t distance = 0;
	const struct module *module = hotspot_find(java, thread, maps, memory, &distance);
	bool other = module != process->module || distance != process->distance;

	process->maps_read_ns = maps->read_ns;
	process->module = module;
	process->distance = distance;
	if (other || thread->now_ns - process->kept_ns >= PROCESS_OLD_NS) {
		index_clear(&process->places);
		process->calls_left = PLACES_CALLS;
		process->kept_ns = thread->now_ns;
	}
	if (module &&
	    (other || (!process->known && thread->now_ns - process->looked_ns >= PROCESS_OLD_NS))) {
		memory->calls_left = LAYOUT_CALLS;
		process->known = java_layout_get(&process->layout, module->read.exports.java,
						 distance, memory);
		process->looked_ns = thread->now_ns;
	}
	process->heap_count = 0;
	if (module && process->known) {
		memory->calls_left = HEAPS_CALLS;
		heaps_read(process, memory);
	}
	memory->calls_left = calls_left;
}

/* The CodeBlob that has the address, or 0. */
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

static bool code_read(const struct java_layout *layout, const struct java_heap *heap,
		      struct thread_memory *memory, uint64_t address, struct java_code *code)
{
	uint64_t blob = blob_find(layout, heap, memory, address), name;
	char text[sizeof("Interpreter") + 1];
	int32_t words;

	if (!blob || !java_int(memory, blob + layout->at[JAVA_BLOB_FRAME], &words))
		return false;
	/* return address and frame pointer at least */
	if (words >= 2 && words <= (int32_t)FRAME_WORDS_MAX) {
		code->frame_words = (uint32_t)words;
		code->incomplete = blob_incomplete(layout, memory, blob, address);
	} else if (java_word(memory, blob + layout->at[JAVA_BLOB_NAME], &name) &&
		   java_text(memory, name, text, sizeof(text))) {
		code->interpreter = !strcmp(text, "Interpreter");
	}
	return true;
}

#define PLACE_LOOKED (1ull << 32) /* above frame_words */
#define PLACE_FOUND (1ull << 33)
#define PLACE_INCOMPLETE (1ull << 34)
#define PLACE_INTERPRETER (1ull << 35)

/* As code_read(), from what was looked up before. */
static bool code_get(struct java_process *process, const struct java_heap *heap,
		     struct thread_memory *memory, uint64_t address, struct java_code *code)
{
	unsigned int calls_left = memory->calls_left;
	uint64_t *place;

	if (process->places.used >= PLACES_KEPT_MAX)
		index_clear(&process->places);
	place = index_put(&process->places, address, NULL);
	if (!(*place & PLACE_LOOKED) && process->calls_left) {
		memory->calls_left = process->calls_left;
		*place = PLACE_LOOKED;
		if (code_read(&process->layout, heap, memory, address, code))
			*place |= PLACE_FOUND | code->frame_words |
				  (code->incomplete ? PLACE_INCOMPLETE : 0) |
				  (code->interpreter ? PLACE_INTERPRETER : 0);
		process->calls_left = memory->calls_left;
		memory->calls_left = calls_left;
	}
	*code = (struct java_code){.frame_words = (uint32_t)*place,
				   .incomplete = *place & PLACE_INCOMPLETE,
				   .interpreter = *place & PLACE_INTERPRETER};
	return *place & PLACE_FOUND;
}

bool java_frames_find(struct java_frames *java, const struct stack_thread *thread,
		      struct process_maps *maps, struct thread_memory *memory, uint64_t address,
		      struct java_code *code)
{
	bool added;
	struct java_process *process =
		cache_get(&java->processes, (uint64_t)thread->pid, thread->now_ns, &added);

	*code = (struct java_code){.frame_words = 0};
	if (added || process->maps_read_ns != maps->read_ns)
		process_renew(java, process, thread, maps, memory);
	for (uint32_t i = 0; i < process->heap_count; i++)
		if (address >= process->heaps[i].first && address < process->heaps[i].end)
			return code_get(process, &process->heaps[i], memory, address, code);
	return false;
}
