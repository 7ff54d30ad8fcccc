/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of another thread: a copy of its top, made with one call; more of it, or other
 * addresses, are copied when they are read. Nothing of it is trusted to be there, and only pages
 * that are in memory are read (base/present_pages.h).
 */
#ifndef TSNAP_UNWIND_THREAD_MEMORY_H
#define TSNAP_UNWIND_THREAD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_MEMORY_PAGE_BYTES 4096u
#define THREAD_MEMORY_PAGES 16 /* pages outside of the top; index: page number modulo this */

struct thread_memory_page {
	uint64_t address; /* 0: none is held */
	char bytes[THREAD_MEMORY_PAGE_BYTES];
};

/* An open pagemap. It shows the memory that its process had when it was opened, not that after an
 * exec, so it is opened again after a time. */
#define THREAD_MEMORY_PAGEMAPS 512 /* at most; index: id of the process or thread modulo those */

struct thread_memory_pagemap {
	int64_t id; /* 0: closed */
	int64_t opened_ns;
	int fd;
};

struct thread_memory {
	const char *proc_root;
	bool by_file; /* memory is read through /proc/TID/mem */
	/* Descriptors of the memory to read, set by the user of a parser; -1: that of tid is
	 * opened. Without the pagemap (-1) pages may be read that are not in memory. */
	int mem, pagemap;
	bool moving;	   /* the thread runs: only the copy of the top has its stack */
	bool unchecked;	   /* pages may be read that are not in memory */
	size_t most_bytes; /* size of the copy of the top, at most */
	char *top;
	int64_t tid;
	int64_t pid; /* its process, which the caller sets; 0: not known */
	uint64_t top_from;
	size_t top_bytes;
	unsigned int calls_left; /* reads of memory that are left for this thread */
	unsigned int steps_left; /* operations of expressions that are left for this thread */
	bool top_ends; /* the next page is not in memory: one of a large frame, never used */
	struct thread_memory_page pages[THREAD_MEMORY_PAGES];
	struct thread_memory_pagemap pagemaps[THREAD_MEMORY_PAGEMAPS];
	unsigned int pagemap_count; /* pagemaps that may be open */
};

/* Makes an empty struct. by_file: proc_root shows other ids than system calls take. */
void thread_memory_init(struct thread_memory *memory, const char *proc_root, bool by_file,
			size_t most_bytes);
void thread_memory_done(struct thread_memory *memory);

/* Forgets the thread before, and copies what lies from sp on. Returns 0, or -errno: -ESRCH, -EPERM,
 * -EFAULT (nothing there, or not in memory). */
int thread_memory_begin(struct thread_memory *memory, int64_t tid, uint64_t sp);
/* Forget what was read of the thread, but not how many reads are left, and copy what lies from an
 * address on, or read all of it in pages. */
void thread_memory_begin_at(struct thread_memory *memory, uint64_t address);
void thread_memory_again(struct thread_memory *memory);
/* Forgets the thread before, and takes a copy from sp on, of a thread that runs, made when it was
 * there; cut to most_bytes. */
void thread_memory_begin_copied(struct thread_memory *memory, int64_t tid, uint64_t sp,
				const void *copy, size_t bytes);
/* Reads memory of the thread. Returns 0 or -errno; -ENOSPC: past the end of the copy of a thread
 * that runs. */
int thread_memory_read(struct thread_memory *memory, uint64_t address, void *to, size_t bytes);
/* Reads code, which stays as it is also while the thread runs. 0 or -errno. */
int thread_memory_read_code(struct thread_memory *memory, uint64_t address, void *to, size_t bytes);

#endif
