/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layout of what HotSpot keeps of its compiled code, threads and monitors: as each libjvm.so tells
 * its own debugger (the serviceability agent) by the tables gHotSpotVMStructs and gHotSpotVMTypes
 * that it exports: src/hotspot/share/runtime/vmStructs.cpp. */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_LAYOUT_H
#define TSNAP_UNWIND_RUNTIME_JAVA_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/runtime_exports.h"
#include "unwind/thread_memory.h"

/* Fields of C++ classes; an offset in the class, or for a static one its address. */
enum java_field {
	JAVA_CACHE_HEAPS, /* CodeCache, since 9: a GrowableArray, */
	JAVA_CACHE_HEAP,  /* before: of one heap */
	JAVA_ARRAY_COUNT,
	JAVA_ARRAY_DATA,
	JAVA_HEAP_MEMORY, /* CodeHeap: two VirtualSpaces, */
	JAVA_HEAP_MAP,	  /* with a byte for each segment of the first */
	JAVA_HEAP_SEGMENT,
	JAVA_SPACE_LOW,
	JAVA_SPACE_FIRST, /* begin of the reserved range, to JAVA_SPACE_END */
	JAVA_SPACE_END,
	JAVA_BLOCK_HEADER, /* HeapBlock, before each CodeBlob */
	JAVA_HEADER_USED,
	JAVA_BLOB_NAME,
	JAVA_BLOB_BYTES,
	JAVA_BLOB_FRAME, /* in words */
	JAVA_BLOB_COMPLETE,
	JAVA_BLOB_CODE,	       /* a pointer; */
	JAVA_BLOB_CODE_OFFSET, /* since 23: from the blob */
	JAVA_THREADS,	       /* ThreadsSMRSupport, since 10: a ThreadsList; */
	JAVA_THREAD_FIRST,     /* before: of a chain */
	JAVA_LIST_COUNT,
	JAVA_LIST_THREADS,
	JAVA_THREAD_NEXT,
	JAVA_THREAD_OS,
	JAVA_OS_ID,
	JAVA_THREAD_STACK,	 /* upper end of the stack */
	JAVA_THREAD_STACK_BYTES, /* size of the stack */
	JAVA_THREAD_PENDING,	 /* the ObjectMonitor that it waits to enter */
	JAVA_THREAD_OWNER_ID,	 /* since 24 */
	JAVA_THREAD_LOCKS,	 /* LockStack, since 21 */
	JAVA_LOCKS_TOP,		 /* from the thread */
	JAVA_LOCKS_FIRST,
	JAVA_MONITOR_OWNER,
	JAVA_MONITOR_OBJECT,
	JAVA_FIELDS,
};

struct java_layout {
	uint64_t at[JAVA_FIELDS];
	uint64_t reported;    /* bits of fields */
	uint64_t block_bytes; /* size of a HeapBlock */
	bool complete_short;  /* JAVA_BLOB_COMPLETE has 16 bits */
};

static inline bool java_layout_has(const struct java_layout *layout, enum java_field field)
{
	return layout->reported >> field & 1;
}

/* True if it tells of threads, and of monitors that they wait for. */
bool java_layout_has_monitors(const struct java_layout *layout);

/* distance: of the process' addresses from the file's. False where the tables can't be read, lack
 * something that tells of code, or make no sense. */
bool java_layout_get(struct java_layout *layout, const uint64_t exports[MODULE_JAVA_EXPORTS],
		     uint64_t distance, struct thread_memory *memory);

/* Numbers in the process' memory, of no stack. */
bool java_word(struct thread_memory *memory, uint64_t address, uint64_t *word);
bool java_int(struct thread_memory *memory, uint64_t address, int32_t *number);
/* At most bytes - 1 of a text, cut there. */
bool java_text(struct thread_memory *memory, uint64_t address, char *text, size_t bytes);

#endif
