/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the kernel's memory, for lock_search.h. A program does it, once whenever we want: from 5.10
 * on the kernel runs it for us (BPF_PROG_TEST_RUN of a raw tracepoint program); since 4.9 a page
 * fault of our own thread can run it, by a perf event that sees the faults of this thread alone.
 * Its map belongs to this process and has no name in any file system. */
#ifndef TSNAP_KERNEL_KERNEL_MEMORY_H
#define TSNAP_KERNEL_KERNEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_memory;

#define MEMORY_WORDS 8
#define MEMORY_LINKS 64	 /* entries of a list that one run follows */
#define MEMORY_STACK 128 /* words */

/* Loads the program. by_fault: it is run by page faults, and the thread that opens it must be the
 * one that reads. *memory: the caller's. 0 or -errno. */
int kernel_memory_open(struct kernel_memory **memory, bool by_fault);
void kernel_memory_close(struct kernel_memory *memory); /* may be NULL */

/* These return what was read, until the next call; words that can't be read are 0, and so are all
 * if the program did not run. */

/* MEMORY_WORDS words from an address on. */
const uint64_t *kernel_memory_words(struct kernel_memory *memory, uint64_t address);
/* MEMORY_LINKS addresses: the word at the address, the word there, and so on. */
const uint64_t *kernel_memory_links(struct kernel_memory *memory, uint64_t address);
/* MEMORY_STACK words from an address on, in pieces of a quarter. */
const uint64_t *kernel_memory_stack(struct kernel_memory *memory, uint64_t address);
/* The task of this thread. */
uint64_t kernel_memory_task(struct kernel_memory *memory);

#endif
