/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layout of HotSpot's own structs, read in a parser. Each libjvm.so exports it for its own debugger
 * (the serviceability agent) in the tables gHotSpotVMStructs and gHotSpotVMTypes:
 * src/hotspot/share/runtime/vmStructs.cpp. Everything in the process' memory may be a lie. */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_LAYOUT_H
#define TSNAP_UNWIND_RUNTIME_JAVA_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/elf_exports.h"
#include "unwind/thread_memory.h"

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
	JAVA_THREAD_OBJECT,  /* java.lang.Thread of a JavaThread */
	JAVA_THREAD_VIRTUAL, /* Java 21 and later: that of the virtual thread that it runs */
	JAVA_OBJECT_MARK,
	JAVA_OBJECT_CLASS,
	JAVA_OBJECT_NARROW, /* 32 bits for its class */
	JAVA_CLASS_SUPER,
	JAVA_CLASS_NAME,
	JAVA_CLASS_POOL,	/* ConstantPool, after which its constants follow */
	JAVA_CLASS_FIELDS,	/* before Java 21: an array of shorts */
	JAVA_CLASS_FIELD_COUNT, /* before Java 21 */
	JAVA_CLASS_STREAM,	/* Java 21 and later: an array of bytes with its fields */
	JAVA_NAME_LENGTH,	/* of a Symbol */
	JAVA_NAME_TEXT,
	JAVA_LIST_LENGTH, /* of an Array */
	JAVA_BYTES_DATA,
	JAVA_SHORTS_DATA,
	JAVA_OBJECT_BASE, /* pointers to objects with 32 bits */
	JAVA_OBJECT_SHIFT,
	JAVA_CLASS_BASE, /* pointers to classes with 32 bits */
	JAVA_CLASS_SHIFT,
	JAVA_HEAP,
	JAVA_HEAP_STOPPED, /* a collection has stopped the threads */
	JAVA_HEAP_COUNT,   /* number of collections */
	JAVA_OPTIONS,	   /* rows of the JVM's options */
	JAVA_OPTION_COUNT,
	JAVA_OPTION_NAME,
	JAVA_OPTION_VALUE, /* a pointer to it */
	JAVA_FIELDS,
};

struct java_layout {
	uint64_t at[JAVA_FIELDS];
	uint64_t reported;    /* bits of the fields that were found */
	uint64_t block_bytes; /* size of a HeapBlock */
	/* sizes of a ConstantPool and of an option's row; 0: not known */
	uint64_t pool_bytes, option_bytes;
	bool complete_short; /* JAVA_BLOB_COMPLETE has 16 bits */
	bool thread_direct;  /* before Java 17: JAVA_THREAD_OBJECT is the object, no handle to it */
};

static inline bool java_layout_has(const struct java_layout *layout, enum java_field field)
{
	return layout->reported >> field & 1;
}

#define JAVA_BIT(field) (1ull << (field))

/* fields: bits */
static inline bool java_layout_has_all(const struct java_layout *layout, uint64_t fields)
{
	return (layout->reported & fields) == fields;
}

/* True if the layout has threads, and monitors that they wait for. */
bool java_layout_has_monitors(const struct java_layout *layout);

/* Reads the layout. distance: of the process' addresses from the file's. False where the tables
 * can't be read, lack a field that finding code needs, or make no sense. */
bool java_layout_get(struct java_layout *layout, const uint64_t exports[MODULE_JAVA_EXPORTS],
		     uint64_t distance, struct thread_memory *memory);

/* Read numbers in the process' memory outside of stacks. */
static inline bool java_word(struct thread_memory *memory, uint64_t address, uint64_t *word)
{
	return !thread_memory_read_code(memory, address, word, sizeof(*word));
}

static inline bool java_int(struct thread_memory *memory, uint64_t address, int32_t *number)
{
	return !thread_memory_read_code(memory, address, number, sizeof(*number));
}

/* Reads at most bytes - 1 of a text, cut there. */
bool java_text(struct thread_memory *memory, uint64_t address, char *text, size_t bytes);

#endif
