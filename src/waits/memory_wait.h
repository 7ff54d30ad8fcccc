/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for memory: a thread in D, in RQ, or in S (a page fault alone), that frees pages for a
 * limit or for the host, waits for a page from swap or from a file, for a page's lock or for its
 * process' memory map. A table recognizes the wait by kernel functions on the thread's stack.
 */
#ifndef TSNAP_WAITS_MEMORY_WAIT_H
#define TSNAP_WAITS_MEMORY_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define USERFAULT_WORDS "page fault (userfaultfd)"

struct cgroup_mount;

/* Adds the reason of the wait: "reclaim (memory.max of /x)", "page fault in /data/x.db". Adds
 * nothing for any other wait, or if the kernel does not show the stack (CAP_SYS_ADMIN). memory: the
 * mount of the memory controller. */
void memory_wait_describe(const char *proc_root, const struct cgroup_mount *memory, int64_t pid,
			  int64_t tid, struct text *to);

/* The words for a stack as /proc/TID/stack shows it; NULL: another wait. *limit: the cgroup v2 file
 * with the limit that was reached, NULL: none; *fault: it is a page fault. Pure. */
const char *memory_wait_words(const char *stack, const char **limit, bool *fault);

#endif
