/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads monitors and their holders for java_monitors.h, in a parser. */
#include "base/memory.h"
#include "unwind/runtime/java_monitors.h"

#include <stdlib.h>

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

bool java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t episode, uint8_t *requested, struct java_monitor *monitor)
{
	const struct java_layout *layout = &java->layout;
	struct java_thread *waiter = java->threads;
	size_t left = java->count;

	while (left && waiter->id != id) {
		waiter++;
		left--;
	}
	*requested = left && pending_read(layout, memory, waiter, episode);
	if (!*requested || !waiter->pending)
		return false;
	*monitor = (struct java_monitor){.address = waiter->pending};
	if (!java_word(memory, monitor->address + layout->at[JAVA_MONITOR_OWNER], &monitor->owner))
		return false;
	if (monitor->owner)
		monitor->holder = holder_of(java, memory, monitor);
	return true;
}
