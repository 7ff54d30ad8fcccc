/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack of another thread: a copy of its top, made with one call; more of it, or other places,
 * as they are asked for. Nothing of it is trusted to be there.
 */
#ifndef TSNAP_STACK_THREAD_MEMORY_H
#define TSNAP_STACK_THREAD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_MEMORY_ELSEWHERE_BYTES 4096

struct thread_memory {
	const char *proc_root;
	bool by_file;	   /* memory is read through /proc/TID/mem */
	size_t most_bytes; /* of the copy of the top */
	char *top;
	int64_t tid;
	uint64_t top_from, elsewhere_from;
	size_t top_bytes, elsewhere_bytes;
	unsigned int calls_left; /* for this thread */
	char elsewhere[THREAD_MEMORY_ELSEWHERE_BYTES];
};

/* by_file: proc_root tells other ids than system calls take. */
void thread_memory_init(struct thread_memory *memory, const char *proc_root, bool by_file,
			size_t most_bytes);
void thread_memory_done(struct thread_memory *memory);

/* Forgets the thread before, and copies what lies from sp on. 0, or -errno: -ESRCH, -EPERM, -EFAULT
 * (nothing there). */
int thread_memory_begin(struct thread_memory *memory, int64_t tid, uint64_t sp);
/* 0 or -errno. */
int thread_memory_read(struct thread_memory *memory, uint64_t address, void *to, size_t bytes);

#endif
