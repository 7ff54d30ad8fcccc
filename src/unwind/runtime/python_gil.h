/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the holder of the GIL that a thread of CPython 3.11 to 3.14 waits for.
 *
 * take_gil() and drop_gil() of Python/ceval_gil.c wait on the two condition variables of struct
 * _gil_runtime_state (Include/internal/pycore_gil.h), so that the futex of such a wait lies in one
 * of them; nothing else waits there. `locked` and `last_holder` beside them have its state and its
 * holder. Both are written with `mutex` held, and switch_number counts each change of the holder:
 * if that mutex is free and a second look finds the same number, the holder is right.
 *
 * An interpreter is looked for among a process' files named python... or libpython..., by what they
 * export. A parser reads files and memory; everything in these may be a lie.
 */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_GIL_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_GIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/python_code.h"
#include "unwind/runtime/runtime_find.h"

/* Offsets in struct _gil_runtime_state from `locked`, an int, on. */
#define SWITCHES_AT 8	/* switch_number */
#define CONDITION_AT 16 /* cond, where threads wait for the GIL */
/* Offset of mutex, whose first word is 0 while it is free. */
#define MUTEX_AT (CONDITION_AT + sizeof(pthread_cond_t))
/* Offset of switch_cond, where the thread that gave the GIL away waits until another one has it. */
#define SWITCH_AT (MUTEX_AT + sizeof(pthread_mutex_t))

struct python_gils {
	struct runtime_reader reader;
	struct cache processes;
	struct runtime_looks looks;
};

/* Makes an empty struct. proc_root must stay. parser: reads files and memory; or NULL. */
void python_gils_init(struct python_gils *gils, const char *proc_root, struct parser *parser);
void python_gils_done(struct python_gils *gils);		  /* takes zeroed structs, too */
void python_gils_sweep(struct python_gils *gils, int64_t now_ns); /* about once a second */

/* True if the thread, which waits for that futex, waits for a GIL. with_location: the holder's
 * location is wanted, too; gil is then as of the first call in this scan. */
bool python_gil_find(struct python_gils *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_location, struct python_gil *gil);

/* Reads the GIL at an address, in a parser. */
bool python_gil_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		     bool with_location, struct python_gil *gil);

/* True if the scan had no time to look at the thread's process, so that nothing is known of it yet.
 */
bool python_gils_due(struct python_gils *gils, const struct stack_thread *thread);

#endif
