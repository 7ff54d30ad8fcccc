/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads code and monitors out of the memory of HotSpot, in a parser. Everything in that memory may
 * be a lie, or change meanwhile. Each libjvm.so exports the layout of its structs for its own
 * debugger (the serviceability agent) in the tables gHotSpotVMStructs and gHotSpotVMTypes:
 * src/hotspot/share/runtime/vmStructs.cpp. */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_MEMORY_H
#define TSNAP_UNWIND_RUNTIME_JAVA_MEMORY_H

#include "base/index.h"
#include "unwind/runtime/runtime_request.h"

/* Fields of C++ classes: each has an offset in its class, or, if it is static, an address. */
enum java_field {
	JAVA_CACHE_HEAPS, /* CodeCache, Java 9 and later: a GrowableArray */
	JAVA_CACHE_HEAP,  /* CodeCache, before 9: one heap */
	JAVA_ARRAY_COUNT,
	JAVA_ARRAY_DATA,
	JAVA_HEAP_MEMORY, /* CodeHeap: VirtualSpace of the code */
	JAVA_HEAP_MAP,	  /* CodeHeap: VirtualSpace with a byte for each segment of code */
	JAVA_HEAP_SEGMENT,
	JAVA_SPACE_LOW,
	JAVA_SPACE_FIRST, /* begin of the reserved range, to JAVA_SPACE_END */
	JAVA_SPACE_END,
	JAVA_BLOCK_HEADER, /* HeapBlock, before each CodeBlob */
	JAVA_HEADER_USED,
	JAVA_BLOB_NAME,
	JAVA_BLOB_BYTES,
	JAVA_BLOB_FRAME, /* size of the frame in words */
	JAVA_BLOB_COMPLETE,
	JAVA_BLOB_CODE,	       /* pointer to the code */
	JAVA_BLOB_CODE_OFFSET, /* Java 23 and later: offset of the code from the blob */
	JAVA_THREADS,	       /* ThreadsSMRSupport, Java 10 and later: a ThreadsList */
	JAVA_THREAD_FIRST,     /* first thread of a chain, before 10 */
	JAVA_LIST_COUNT,
	JAVA_LIST_THREADS,
	JAVA_THREAD_NEXT,
	JAVA_THREAD_OS,
	JAVA_OS_ID,
	JAVA_THREAD_STACK,	 /* upper end of the stack */
	JAVA_THREAD_STACK_BYTES, /* size of the stack */
	JAVA_THREAD_PENDING,	 /* the ObjectMonitor that it waits to enter */
	JAVA_THREAD_OWNER_ID,	 /* Java 24 and later */
	JAVA_THREAD_LOCKS,	 /* LockStack, Java 21 and later */
	JAVA_LOCKS_TOP,		 /* end of the LockStack, as an offset from the thread */
	JAVA_LOCKS_FIRST,
	JAVA_MONITOR_OWNER,
	JAVA_MONITOR_OBJECT,
	JAVA_FIELDS,
};

struct java_layout {
	uint64_t at[JAVA_FIELDS];
	uint64_t reported;    /* bits of the fields that were found */
	uint64_t block_bytes; /* size of a HeapBlock */
	bool complete_short;  /* JAVA_BLOB_COMPLETE has 16 bits */
};

static inline bool java_layout_has(const struct java_layout *layout, enum java_field field)
{
	return layout->reported >> field & 1;
}

/* True if the layout has threads, and monitors that they wait for. */
bool java_layout_has_monitors(const struct java_layout *layout);

/* Reads the layout. distance: of the process' addresses from the file's. False where the tables
 * can't be read, lack a field that finding code needs, or make no sense. */
bool java_layout_get(struct java_layout *layout, const uint64_t exports[MODULE_JAVA_EXPORTS],
		     uint64_t distance, struct thread_memory *memory);

#define JAVA_FRAME_WORDS_MAX (1u << 17)
#define JAVA_THREADS_MAX 4096 /* limit of the threads that are known of a process */

/* A JVM and its threads. */
struct java_threads {
	struct java_layout layout;
	struct java_thread *threads;
	size_t count, capacity;
	/* Monitors to positions, plus one, of threads that have had them; JAVA_THREADS_MAX at
	 * most */
	struct index holders;
};

/* Fill answers to requests, and return their bytes. addresses: as many as the request says. */
size_t java_code_answer(const struct runtime_request *of, const char *addresses,
			struct thread_memory *memory, void *to);
size_t java_layout_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
size_t java_monitor_answer(const struct runtime_request *of, struct thread_memory *memory,
			   void *to);
void java_memory_clear(void); /* forgets all processes */

/* Lists the threads of a JVM. java: zeroed at first but for its layout;
 * java_threads_done() frees it. False: the list can't be read. */
bool java_threads_list(struct java_threads *java, struct thread_memory *memory);
void java_threads_done(struct java_threads *java);
/* Reads the monitor that a thread waits for. *requested: what it waits for could be
 * read. False: it waits for no monitor. */
bool java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t episode, uint8_t *requested, struct java_monitor *monitor);

#endif
