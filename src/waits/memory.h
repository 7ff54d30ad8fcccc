/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for memory: a thread in D, in RQ, or in S (a page fault alone), that frees pages for a
 * limit or for the host, waits for a page from swap or from a file, for a page's lock or for its
 * process' memory map. A table recognizes the wait by kernel functions on the thread's stack, which
 * the kernel shows with CAP_SYS_ADMIN: "reclaim (memory.max of /x)", "page fault in /data/x.db".
 */
#ifndef TSNAP_WAITS_MEMORY_H
#define TSNAP_WAITS_MEMORY_H

#include <stdbool.h>

struct wait;

struct memory_row {
	const char *functions; /* patterns of fnmatch(3) separated by spaces */
	const char *within;    /* one of these must be on the stack, too; NULL: no such condition */
	const char *words;
	const char *limit; /* limit of cgroup v2 that the group has reached */
	bool fault;
	bool runs; /* a runnable thread does this itself; others were interrupted in a page fault */
};

/* The row for a stack as /proc/TID/stack shows it; NULL: another wait. Pure. */
const struct memory_row *memory_row_find(const char *stack);

/* of_stack() of the object. */
bool memory_of_stack(struct wait *wait, const char *stack, bool runs);

#endif
