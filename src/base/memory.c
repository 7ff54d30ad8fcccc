/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* MCL_ONFAULT is in glibc from 2.24 on; include/uapi/asm-generic/mman.h */
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

#define LOCKED_MOST (1ul << 30) /* more than is ever used */
#define MAPPED_LEAST (256 << 10)
#define FREE_MOST (512 << 10) /* free memory that may remain at the end of the heap */

static void (*before_end)(void);

void memory_before_end(void (*function)(void))
{
	before_end = function;
}

static void out_of_memory(void)
{
	static const char words[] = "tsnap: out of memory\n";

	if (before_end)
		before_end();
	if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0)
		_exit(1);
	_exit(1);
}

void *memory_get(size_t bytes)
{
	void *block = calloc(1, bytes ? bytes : 1);

	if (!block)
		out_of_memory();
	return block;
}

void *memory_resize(void *block, size_t count, size_t each)
{
	void *bigger;

	if (each && count > SIZE_MAX / each)
		out_of_memory();
	bigger = realloc(block, count && each ? count * each : 1);
	if (!bigger)
		out_of_memory();
	return bigger;
}

void *memory_double(void *block, size_t *capacity, size_t needed, size_t each)
{
	/* does not overflow: realloc() gives at most half of a size_t */
	size_t twice = *capacity ? 2 * *capacity : 64;

	*capacity = needed > twice ? needed : twice;
	return memory_resize(block, *capacity, each);
}

char *memory_text(const char *text, size_t length)
{
	char *copy = memory_get(length + 1);

	memcpy(copy, text, length);
	return copy;
}

/* Fixes glibc's thresholds, which otherwise grow with the blocks that are freed, up to 32 and 64
 * MB: pages in the middle of the heap never return to the kernel while they are locked, as
 * madvise(2) refuses locked pages. */
static void large_blocks_map(void)
{
	mallopt(M_MMAP_THRESHOLD, MAPPED_LEAST);
	mallopt(M_TRIM_THRESHOLD, FREE_MOST);
}

static int memory_lock_try(void)
{
	void *large;
	int err = 0;

	large_blocks_map();
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		return errno == ENOMEM ? -EPERM : -errno;
	/* only a try shows whether it works: CAP_IPC_LOCK of a user namespace does not count */
	large = mmap(NULL, LOCKED_MOST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (large == MAP_FAILED)
		err = errno == EAGAIN ? -EPERM : -errno;
	else
		munmap(large, LOCKED_MOST);
	if (err)
		munlockall();
	return err;
}

int memory_lock(void)
{
	static int result = 1; /* result of the first call; 1: not called yet */

	if (result > 0)
		result = memory_lock_try();
	return result;
}
