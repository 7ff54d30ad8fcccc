/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the Python functions that a thread is in, in place of the C function that interprets them. A
 * parser reads them (python_memory.h) from the memory of CPython 3.11 to 3.14. The thread must
 * stand still, as for its stack; the caller checks that it did.
 *
 * An interpreter is known by what its file exports, its threads by their ids. Each call of the
 * interpreter's loop has a mark on the C stack (a _PyCFrame in 3.11, the frame that it begins with
 * since 3.12), and the mark shows which C frame is that call's, however it was compiled.
 *
 * A program can make each of its stacks as long to read as the bounds of one stack allow. So one
 * process' stacks may take about 8 ms of a scan, and all together 20 ms; others are left as they
 * are, and counted in late_count, for a later scan to read.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_FRAMES_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "unwind/module_table.h"
#include "unwind/runtime/runtime_request.h"
#include "unwind/unwinder.h"

struct python_frames {
	struct runtime_reader reader;
	struct module_table *modules;
	struct cache processes;
	int64_t scan_ns;	/* time of the present scan */
	uint64_t unknown_count; /* stacks of a Python version that is not known */
	uint64_t broken_count;	/* stacks of which a part could not be read */
	uint64_t work;		/* work of reading stacks in the present scan */
	uint64_t late_count;	/* stacks that were not read, because too much work was done */
	uint64_t moved_count;	/* the caller's: stacks whose thread did not stand still */
};

/* Makes an empty struct. parser: reads the memory; or NULL. */
void python_frames_init(struct python_frames *python, const char *proc_root,
			struct module_table *modules, struct parser *parser);
void python_frames_clear(struct python_frames *python); /* called before modules or names go, too */
void python_frames_sweep(struct python_frames *python, int64_t now_ns); /* about once a second */

/* Puts Python functions into a walk; one without an interpreter in it stays as it is.
 * thread->now_ns is the same for all of one scan. */
void python_frames_add(struct python_frames *python, const struct stack_thread *thread,
		       struct stack_walk *walk);
/* True if the process is known to have an interpreter. */
bool python_frames_expect(struct python_frames *python, int64_t pid);
/* True if Python functions belong into a walk that python_frames_add() did not get. */
bool python_frames_lack(struct python_frames *python, const struct stack_thread *thread,
			const struct stack_walk *walk);

#endif
