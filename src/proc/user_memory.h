/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads memory of a sampled thread, such as words and texts that its system call was given,
 * from pages that are in memory (base/present_pages.h). Without pagemap nothing is read.
 */
#ifndef TSNAP_PROC_USER_MEMORY_H
#define TSNAP_PROC_USER_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads up to size bytes, as many as are in memory from the address on. Returns their count, or
 * -errno (-EFAULT: none is in memory). */
ssize_t user_memory_read(const char *root, int64_t pid, int64_t tid, uint64_t address, void *bytes,
			 size_t size);
/* Open files of processes whose memory a scan reads more than once: opening and closing them takes
 * five sixths of a read. They refer to the memory that a process had when they were opened, not to
 * its memory after an exec, so they are used in one scan only. Zeroed: none are open. */
#define USER_MEMORY_FILES 16

struct user_memory {
	struct user_memory_files {
		int64_t pid, scan_ns; /* 0: closed */
		int pagemap, mem;
	} files[USER_MEMORY_FILES];
	unsigned int next; /* slot of the next files, which closes the oldest */
};

/* Does as user_memory_read(), through files that stay open during the scan scan_ns. */
ssize_t user_memory_read_again(struct user_memory *open, const char *root, int64_t pid, int64_t tid,
			       int64_t scan_ns, uint64_t address, void *bytes, size_t size);
/* Closes files of other scans; INT64_MAX: of all scans. */
void user_memory_sweep(struct user_memory *open, int64_t scan_ns);

/* Reads a text and its NUL. Returns its length, or -errno (-EFAULT: its end is not in memory, or
 * not within size bytes). */
ssize_t user_text_read(const char *root, int64_t pid, int64_t tid, uint64_t address, char *bytes,
		       size_t size);

#endif
