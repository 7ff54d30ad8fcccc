/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of languages' runtimes that threads wait for, and the threads that have them. A runtime is
 * found in a process by the name of the file that it is mapped from, and by what the file exports.
 * A parser reads files and memory; everything in these may be a lie, or change meanwhile. Nothing
 * is read until a thread waits for a futex whose holder is not known otherwise.
 *
 * runtime_locks.c has a row for each kind of lock.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_LOCKS_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_LOCKS_H

#include <stdint.h>

#include "sample/runtime_lock.h"

struct parser;

/* Zeroed at first. */
struct runtime_locks {
	struct runtime_finder *finders; /* one for each kind; NULL: nothing is found */
};

/* proc_root must stay. parser: reads files and memory; or NULL. */
void runtime_locks_init(struct runtime_locks *locks, const char *proc_root, struct parser *parser);
void runtime_locks_done(struct runtime_locks *locks);
void runtime_locks_sweep(struct runtime_locks *locks, int64_t now_ns); /* about once a second */

/* finder: struct runtime_locks. As long as a thread has the same episode it is taken to wait for
 * the same lock. */
runtime_lock_finder runtime_lock_find;

#endif
