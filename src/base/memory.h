/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation that does not come back empty: out of memory ends the process with one line and exit
 * code 1.
 */
#ifndef TSNAP_BASE_MEMORY_H
#define TSNAP_BASE_MEMORY_H

#include <stddef.h>

void *memory_get(size_t bytes);				     /* zeroed; release with free() */
void *memory_resize(void *block, size_t count, size_t each); /* like realloc; new bytes undefined */
char *memory_text(const char *text, size_t length);	     /* a NUL-terminated copy; free() it */

/* Sets the function that is called before the process ends for lack of memory; NULL: none. */
void memory_before_end(void (*function)(void));

/* From now on pages of this process stay in memory once they were touched: mlockall(2) with
 * MCL_ONFAULT, of Linux 4.4. Children do not inherit it. 0, or -errno; -EPERM where allocations
 * would fail at the limit on locked memory (`ulimit -l`, without CAP_IPC_LOCK). Later calls only
 * return what the first one did: the sandbox refuses the system call by then. Blocks of 256 KB and
 * more are mapped from then on, and go back to the kernel when they are freed; that holds where
 * pages can't be locked, too. */
int memory_lock(void);

/* For memory_grow(). */
void *memory_double(void *block, size_t *capacity, size_t needed, size_t each);

/* A list that grows: block, with room for at least `needed` items of that size. *capacity: how many
 * it has room for, 0 where block is NULL. As memory_resize(). */
static inline void *memory_grow(void *block, size_t *capacity, size_t needed, size_t each)
{
	return needed <= *capacity ? block : memory_double(block, capacity, needed, each);
}

#endif
