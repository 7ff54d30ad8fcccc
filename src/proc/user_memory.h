/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a sampled thread's memory holds: words and texts that its system call was given.
 *
 * Only pages that are in memory are read. Any other would be faulted in for us, and that can take
 * for ever: from a swap device that hangs, or from a file system or userfaultfd(2) of the thread's
 * own making. /proc/TID/pagemap tells (bit 63, since 2.6.25; open to PTRACE_MODE_READ since 4.2);
 * where it is missing nothing is read. A page can still go between the look and the read.
 */
#ifndef TSNAP_PROC_USER_MEMORY_H
#define TSNAP_PROC_USER_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads up to size bytes, as many as lie in pages that are there. Their count, or -errno (-EFAULT:
 * none is there). */
ssize_t user_memory_read(const char *root, int64_t pid, int64_t tid, uint64_t address, void *bytes,
			 size_t size);
/* Reads a text and its NUL. Its length, or -errno (-EFAULT: its end is not there, or not within
 * size bytes). */
ssize_t user_text_read(const char *root, int64_t pid, int64_t tid, uint64_t address, char *bytes,
		       size_t size);

#endif
