/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Python functions that a thread is in, in place of the C function that interprets them: read
 * from the memory of CPython 3.11 to 3.14, in which everything may be a lie. The thread must stand
 * still, as for its stack; who calls checks that it did.
 *
 * An interpreter is known by what its file exports, its threads by their ids. Each call of the
 * interpreter's loop has a mark on the C stack (a _PyCFrame in 3.11, the frame that it begins with
 * since 3.12), and that tells which C frame is that call's, however it was compiled.
 *
 * A program can make each of its stacks as long to read as the bounds of one stack allow. So one
 * process' stacks may take about 8 ms of a scan, and all together 20 ms; others are
 * left as they are, and counted in late_count, for a later scan to read.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_FRAMES_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/index.h"
#include "unwind/module_table.h"
#include "unwind/runtime/python_code.h"
#include "unwind/unwinder.h"

struct python_frames {
	const char *proc_root;
	struct module_table *modules;
	struct cache processes;
	/* Of code at an instruction: a lent name's address; by what it is as well, */
	struct index names;
	struct index scan_names; /* or by where it is alone, in one scan, */
	int64_t scan_ns;	 /* that of this moment */
	uint64_t unknown_count;	 /* stacks of a version that is not known */
	uint64_t broken_count;	 /* stacks of which a part could not be read */
	uint64_t work;		 /* of reading stacks, since scan_ns */
	uint64_t late_count;	 /* stacks that were not read, because there had been too much */
};

void python_frames_init(struct python_frames *python, const char *proc_root,
			struct module_table *modules);
void python_frames_clear(struct python_frames *python); /* also before modules or names go */
void python_frames_sweep(struct python_frames *python, int64_t now_ns); /* about once a second */

/* memory: of the walk. A walk without an interpreter in it stays as it is. thread->now_ns is the
 * same for all of one scan. */
void python_frames_add(struct python_frames *python, const struct stack_thread *thread,
		       struct thread_memory *memory, struct stack_walk *walk);

#endif
