/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes of the frames of code that HotSpot (Java 8 and later) has compiled: its best compiler uses
 * the frame pointer for something else, and only the JVM's own memory has the sizes. Everything in
 * it may be a lie, or change meanwhile.
 *
 * A frame's CodeBlob has its size, found by the code heap's segment map, whose fields java_layout
 * finds by what libjvm.so exports (vmStructs). A parser reads it (java_memory.h). What it found is
 * kept for 5 s by address. Where a size is looked up and does not fit, frame pointers are followed.
 * x86-64 only.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_FRAMES_H
#define TSNAP_UNWIND_RUNTIME_JAVA_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "unwind/module_table.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/thread_memory.h"
#include "unwind/walker.h"

struct java_frames {
	struct runtime_reader reader;
	struct module_table *modules;
	struct cache processes;
};

/* Facts about the code at an address. */
struct java_code {
	uint32_t frame_words; /* size, with the return address; 0: it has a frame pointer */
	bool incomplete;      /* the code has not made its frame yet */
	bool interpreter;     /* the code is the interpreter of bytecode */
};

/* Fills code for the code at an address. memory: that of the walk. False: the process runs no Java,
 * or the address is in no such code. */
bool java_frames_find(struct java_frames *java, const struct stack_thread *thread,
		      struct process_maps *maps, struct thread_memory *memory, uint64_t address,
		      struct java_code *code);

#endif
