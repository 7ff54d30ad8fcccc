/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation that never returns NULL: out of memory ends the process with one line and exit code
 * 1. */
#ifndef TSNAP_BASE_MEMORY_H
#define TSNAP_BASE_MEMORY_H

#include <stddef.h>

void *memory_get(size_t bytes);				     /* zeroed; release with free() */
void *memory_resize(void *block, size_t count, size_t each); /* like realloc; new bytes undefined */
char *memory_text(const char *text, size_t length);	     /* a NUL-terminated copy; free() it */

/* Sets the function that is called before the process ends for lack of memory; NULL: none. */
void memory_before_end(void (*function)(void));

/* Locks pages of this process into memory once they are touched: mlockall(2) with MCL_ONFAULT, of
 * Linux 4.4. Children do not inherit it. 0, or -errno; -EPERM if allocations would fail at the
 * limit on locked memory (`ulimit -l`, without CAP_IPC_LOCK). Later calls only return the result of
 * the first: the sandbox refuses the system call by then. From the first call on blocks of 256 KB
 * and more are mapped, and returned to the kernel when they are freed, even if pages can't be
 * locked. */
int memory_lock(void);

/* Slow path of memory_grow(). */
void *memory_double(void *block, size_t *capacity, size_t needed, size_t each);

/* Grows a list: returns block, or a larger one, with capacity for at least `needed` items of size
 * `each`. *capacity: its present capacity, 0 if block is NULL. New bytes are undefined, as of
 * memory_resize(). */
static inline void *memory_grow(void *block, size_t *capacity, size_t needed, size_t each)
{
	return needed <= *capacity ? block : memory_double(block, capacity, needed, each);
}

#endif
