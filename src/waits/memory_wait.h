/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for memory: a thread in D, or in RQ, that frees pages for a limit or for the host, waits
 * for a page from swap or from a file, for a page's lock or for its process' memory map. Kernel
 * functions on its stack tell, by a table.
 */
#ifndef TSNAP_WAITS_MEMORY_WAIT_H
#define TSNAP_WAITS_MEMORY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct cgroup_mount;

/* Adds what the thread waits for: "reclaim (memory.max of /x)", "page fault in /data/x.db". Adds
 * nothing where it is none of these, or the kernel does not show the stack (CAP_SYS_ADMIN).
 * memory: where the memory controller is mounted. */
void memory_wait_describe(const char *proc_root, const struct cgroup_mount *memory, int64_t pid,
			  int64_t tid, struct text *to);

/* The pure part: the words for a stack as /proc/TID/stack shows it, NULL: another wait. *limit: the
 * file of v2's control groups whose limit it is about, NULL: none; *fault: it is a page fault. */
const char *memory_wait_words(const char *stack, const char **limit, bool *fault);

#endif
