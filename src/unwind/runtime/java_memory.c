/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_memory.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define STACK_BYTES_MAX (1ull << 32)
#define LOCKS_MAX 8 /* LockStack::CAPACITY */
#define ANONYMOUS_OWNER 1

struct java_thread {
	uint64_t address;	     /* address of the JavaThread */
	uint64_t stack, stack_bytes; /* upper end of the stack, and its size */
	uint64_t owner_id; /* JavaThread::_monitor_owner_id; constant for a platform's thread */
	int32_t id;
	bool requested; /* pending was read in episode; pending is 0 if it waits for no monitor */
	uint64_t episode, pending;
};

/* --- threads */

static bool thread_id_read(const struct java_layout *layout, struct thread_memory *memory,
			   uint64_t thread, int32_t *id)
{
	uint64_t os;

	return java_word(memory, thread + layout->at[JAVA_THREAD_OS], &os) &&
	       java_int(memory, os + layout->at[JAVA_OS_ID], id);
}

/* Adds a thread, unless it begins or ends and has no system thread. */
static void thread_add(struct java_threads *java, struct thread_memory *memory, uint64_t address)
{
	const struct java_layout *layout = &java->layout;
	struct java_thread thread = {.address = address};

	if (!java_word(memory, address + layout->at[JAVA_THREAD_STACK], &thread.stack) ||
	    !java_word(memory, address + layout->at[JAVA_THREAD_STACK_BYTES],
		       &thread.stack_bytes) ||
	    !thread_id_read(layout, memory, address, &thread.id) ||
	    thread.stack_bytes > STACK_BYTES_MAX || thread.stack_bytes > thread.stack)
		return;
	if (java_layout_has(layout, JAVA_THREAD_OWNER_ID) &&
	    !java_word(memory, address + layout->at[JAVA_THREAD_OWNER_ID], &thread.owner_id))
		return;
	java->threads = memory_grow(java->threads, &java->capacity, java->count + 1,
				    sizeof(*java->threads));
	java->threads[java->count++] = thread;
}

static bool chain_list(struct java_threads *java, struct thread_memory *memory)
{
	uint64_t thread;

	if (!java_word(memory, java->layout.at[JAVA_THREAD_FIRST], &thread))
		return false;
	for (int i = 0; thread && i < JAVA_THREADS_MAX; i++) {
		thread_add(java, memory, thread);
		if (!java_word(memory, thread + java->layout.at[JAVA_THREAD_NEXT], &thread))
			return false;
	}
	return true;
}

bool java_threads_list(struct java_threads *java, struct thread_memory *memory)
{
	const struct java_layout *layout = &java->layout;
	uint64_t list, threads, thread;
	int32_t count;

	java->count = 0;
	index_empty(&java->holders);
	if (!java_layout_has(layout, JAVA_THREADS))
		return chain_list(java, memory);
	if (!java_word(memory, layout->at[JAVA_THREADS], &list) ||
	    !java_int(memory, list + layout->at[JAVA_LIST_COUNT], &count) ||
	    !java_word(memory, list + layout->at[JAVA_LIST_THREADS], &threads))
		return false;
	for (int32_t i = 0; i < count && i < JAVA_THREADS_MAX; i++) {
		if (!java_word(memory, threads + (uint64_t)i * sizeof(thread), &thread))
			return false;
		thread_add(java, memory, thread);
	}
	return true;
}

void java_threads_done(struct java_threads *java)
{
	free(java->threads);
	index_clear(&java->holders);
	*java = (struct java_threads){.count = 0};
}

/* --- monitors */

/* True if the thread has the object in its LockStack, whose top is an offset from the thread. */
static bool has_locked(const struct java_layout *layout, struct thread_memory *memory,
		       uint64_t thread, uint64_t object)
{
	uint64_t locks = layout->at[JAVA_THREAD_LOCKS], locked;
	uint64_t first = locks + layout->at[JAVA_LOCKS_FIRST];
	int32_t top;

	if (!java_int(memory, thread + locks + layout->at[JAVA_LOCKS_TOP], &top))
		return false;
	for (uint64_t at = first; at < first + LOCKS_MAX * sizeof(locked) && (int64_t)at < top;
	     at += sizeof(locked))
		if (!java_word(memory, thread + at, &locked) || locked == object)
			return locked == object;
	return false;
}

/* Returns the object that an anonymous owner has locked; 0: not known. The monitor has a WeakHandle
 * to it. */
static uint64_t object_of(const struct java_layout *layout, struct thread_memory *memory,
			  uint64_t monitor)
{
	uint64_t handle, object;

	return java_layout_has(layout, JAVA_THREAD_LOCKS) &&
			       java_layout_has(layout, JAVA_LOCKS_TOP) &&
			       java_layout_has(layout, JAVA_LOCKS_FIRST) &&
			       java_layout_has(layout, JAVA_MONITOR_OBJECT) &&
			       java_word(memory, monitor + layout->at[JAVA_MONITOR_OBJECT],
					 &handle) &&
			       java_word(memory, handle, &object)
		       ? object
		       : 0;
}

/* True if the thread, as it was read, is the owner; for an anonymous owner its LockStack is read
 * now. */
static bool may_own(const struct java_layout *layout, struct thread_memory *memory,
		    const struct java_thread *thread, uint64_t owner, uint64_t object)
{
	if (owner == ANONYMOUS_OWNER)
		return object && has_locked(layout, memory, thread->address, object);
	if (java_layout_has(layout, JAVA_THREAD_OWNER_ID))
		return thread->owner_id == owner;
	return owner == thread->address || thread->stack - owner - 1 < thread->stack_bytes;
}

/* True if the thread is still the one that was read. */
static bool is_same(const struct java_layout *layout, struct thread_memory *memory,
		    const struct java_thread *thread)
{
	uint64_t owner_id = thread->owner_id;
	int32_t id;

	return thread_id_read(layout, memory, thread->address, &id) && id == thread->id &&
	       (!java_layout_has(layout, JAVA_THREAD_OWNER_ID) ||
		(java_word(memory, thread->address + layout->at[JAVA_THREAD_OWNER_ID], &owner_id) &&
		 owner_id == thread->owner_id));
}

/* Returns the slot for the position of a monitor's last holder. No more monitors are waited for at
 * one time than there are threads to do so; a process that lies names a new one each time. */
static uint64_t *holder_location(struct java_threads *java, uint64_t monitor)
{
	if (java->holders.used >= JAVA_THREADS_MAX && !index_find(&java->holders, monitor))
		index_empty(&java->holders);
	return index_put(&java->holders, monitor, NULL);
}

/* Returns the thread id of the monitor's holder. 0: not known. */
static int64_t holder_of(struct java_threads *java, struct thread_memory *memory,
			 const struct java_monitor *monitor)
{
	const struct java_layout *layout = &java->layout;
	uint64_t *before = holder_location(java, monitor->address), object = 0;
	size_t first = *before ? *before - 1 : 0;

	if (monitor->owner == ANONYMOUS_OWNER)
		object = object_of(layout, memory, monitor->address);
	for (size_t i = 0; i < java->count; i++) {
		size_t at = (first + i) % java->count;

		if (!may_own(layout, memory, &java->threads[at], monitor->owner, object))
			continue;
		*before = at + 1;
		return is_same(layout, memory, &java->threads[at]) ? java->threads[at].id : 0;
	}
	return 0;
}

/* Reads the monitor that a thread waits to enter, once in an episode: it stays as it is until the
 * thread is woken. */
static bool pending_read(const struct java_layout *layout, struct thread_memory *memory,
			 struct java_thread *waiter, uint64_t episode)
{
	if (waiter->requested && waiter->episode == episode)
		return true;
	waiter->requested = is_same(layout, memory, waiter) &&
			    java_word(memory, waiter->address + layout->at[JAVA_THREAD_PENDING],
				      &waiter->pending);
	waiter->episode = episode;
	return waiter->requested;
}

/* Reads the lock that a thread is parked for, and its owner, who may not be listed yet. */
static void parked_read(struct java_threads *java, struct thread_memory *memory,
			const struct java_thread *waiter, struct java_monitor_answer *answer)
{
	struct java_monitor *lock = &answer->monitor;
	enum java_parked parked =
		java_parked_read(&java->locks, &java->layout, memory, waiter->address, lock);

	answer->requested = parked != PARKED_UNREAD;
	answer->later = parked == PARKED_LATER;
	answer->waits = parked == PARKED_OWNED;
	for (size_t i = 0; answer->waits && i < java->count; i++)
		if (java->threads[i].address == lock->owner)
			lock->holder = is_same(&java->layout, memory, &java->threads[i])
					       ? java->threads[i].id
					       : 0;
}

void java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t episode, struct java_monitor_answer *answer)
{
	struct java_monitor *monitor = &answer->monitor;
	const struct java_layout *layout = &java->layout;
	struct java_thread *waiter = java->threads;
	size_t left = java->count;

	while (left && waiter->id != id) {
		waiter++;
		left--;
	}
	answer->requested = left && pending_read(layout, memory, waiter, episode);
	if (!answer->requested)
		return;
	if (!waiter->pending) {
		parked_read(java, memory, waiter, answer);
		return;
	}
	monitor->address = waiter->pending;
	answer->waits = java_word(memory, monitor->address + layout->at[JAVA_MONITOR_OWNER],
				  &monitor->owner);
	if (!answer->waits)
		return;
	if (monitor->owner)
		monitor->holder = holder_of(java, memory, monitor);
	java_monitor_class(&java->locks, layout, memory, monitor->address, monitor->object);
}

/* --- code, and answers */

#define PROCESSES_MAX 4096
#define PROCESS_IDLE_NS (150 * NS_PER_SECOND)
#define SWEEP_NS (10 * NS_PER_SECOND)
#define LAYOUT_OLD_NS (5 * NS_PER_SECOND) /* interval of looking for a missing layout */
#define SEGMENT_MAX 20			  /* log2 of a segment's bytes; HotSpot has 6 to 8 */
#define HEAP_BYTES_MAX (4ull << 30)
#define HOPS_MAX 8192
#define SEGMENT_FREE 0xff
#define JAVA_CODE_CALLS_MAX 16384 /* reads of memory, for one answer on code */
#define HEAPS_CALLS 64		  /* reads of memory, for the heaps of one process */
#define LAYOUT_CALLS 4096	  /* reads of memory, for the layout of a process */
#define LIST_CALLS 16384	  /* reads of memory, for the threads of a process */
#define MONITOR_CALLS 1024	  /* reads of memory, for one answer on a monitor */
#define OBJECTS_CALLS 8192	  /* reads of memory, for the options and classes of a process */

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

void java_memory_clear(void)
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
	process->java.locks = (struct java_locks){.looked = false};
	process->listed = false;
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
			struct thread_memory *memory, void *to)
{
	struct java_code_answer *answer = to;
	const size_t head = offsetof(struct java_code_answer, codes);
	const uint32_t calls =
		of->calls_left < JAVA_CODE_CALLS_MAX ? of->calls_left : JAVA_CODE_CALLS_MAX;
	struct java_known *process = process_get(of);

	memset(answer, 0, head);
	process_renew(process, of, memory);
	answer->known = process->known;
	answer->heap_count = process->known ? process->heap_count : 0;
	for (uint32_t i = 0; i < answer->heap_count; i++)
		answer->heaps[i] =
			(struct java_range){process->heaps[i].first, process->heaps[i].end};
	memory->calls_left = calls;
	for (; answer->count < of->count && answer->count < JAVA_CODES_MAX; answer->count++) {
		uint64_t address;

		memcpy(&address, addresses + answer->count * sizeof(address), sizeof(address));
		answer->codes[answer->count] = address_look(process, memory, address);
	}
	answer->calls_used = calls - memory->calls_left;
	return head + answer->count * sizeof(answer->codes[0]);
}

/* Lists the threads, and by one of the first finds what is needed to read the locks of
 * java.util.concurrent: at first for the layout, when pages are read that nobody else reads. */
static void threads_read(struct java_known *process, struct thread_memory *memory)
{
	struct java_threads *java = &process->java;

	memory->calls_left = LIST_CALLS;
	process->listed = java_threads_list(java, memory);
	memory->calls_left = OBJECTS_CALLS;
	for (size_t i = 0; i < java->count && i < 4 && !java->locks.thread_class; i++)
		java_locks_find(&java->locks, &java->layout, memory, java->threads[i].address);
}

size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	struct java_known *process = process_get(of);
	struct java_layout_answer *answer = to;

	layout_read(process, of, memory);
	answer->has_monitors = process->known && java_layout_has_monitors(&process->java.layout);
	if (answer->has_monitors)
		threads_read(process, memory);
	return sizeof(*answer);
}

size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory, void *to)
{
	struct java_known *process = process_get(of);
	struct java_monitor_answer *answer = to;

	memset(answer, 0, sizeof(*answer));
	answer->known = process->known && java_layout_has_monitors(&process->java.layout);
	if (answer->known && (of->anew || !process->listed)) {
		threads_read(process, memory);
		thread_memory_again(memory);
	}
	memory->calls_left = MONITOR_CALLS;
	if (answer->known)
		java_monitor_read(&process->java, memory, (int64_t)of->id, of->episode, answer);
	return sizeof(*answer);
}
