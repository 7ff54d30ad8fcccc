/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/thread_memory.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Most stacks end within this; copying 64 KB takes three times as long. */
#define FIRST_BYTES 8192
#define CALLS_MAX 128
#define PAGE_BYTES 4096u

void thread_memory_init(struct thread_memory *memory, const char *proc_root, bool by_file,
			size_t most_bytes)
{
	*memory = (struct thread_memory){.most_bytes = most_bytes < FIRST_BYTES ? FIRST_BYTES
										: most_bytes};
	memory->proc_root = proc_root;
	memory->by_file = by_file;
	memory->top = memory_get(memory->most_bytes);
}

void thread_memory_done(struct thread_memory *memory)
{
	free(memory->top);
	*memory = (struct thread_memory){.top = NULL};
}

static ssize_t file_copy(const struct thread_memory *memory, uint64_t from, void *to, size_t bytes)
{
	char path[PATH_MAX];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%lld/mem", memory->proc_root, (long long)memory->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = pread(fd, to, bytes, (off_t)from);
	/* EIO: nothing is there */
	got = got < 0 ? (errno == EIO ? -EFAULT : -errno) : got;
	close(fd);
	return got;
}

/* Bytes copied, as far as they are there, or -errno. */
static ssize_t thread_copy(struct thread_memory *memory, uint64_t from, void *to, size_t bytes)
{
	/* in pages: a copy that meets a missing one ends before it */
	struct iovec local = {to, bytes}, remote[2];
	size_t first = PAGE_BYTES - from % PAGE_BYTES;
	ssize_t got;

	if (!memory->calls_left)
		return -E2BIG;
	memory->calls_left--;
	if (memory->by_file) {
		got = file_copy(memory, from, to, bytes);
		return got ? got : -EFAULT;
	}
	first = first < bytes ? first : bytes;
	/* a number from outside that is not looked at here */
	memcpy(&remote[0].iov_base, &from, sizeof(from));
	remote[0].iov_len = first;
	from += first;
	memcpy(&remote[1].iov_base, &from, sizeof(from));
	remote[1].iov_len = bytes - first;
	got = process_vm_readv((pid_t)memory->tid, &local, 1, remote, bytes > first ? 2 : 1, 0);
	if (got < 0 && errno == ENOSYS) { /* CONFIG_CROSS_MEMORY_ATTACH */
		memory->by_file = true;
		return thread_copy(memory, from - first, to, bytes);
	}
	return got < 0 ? -errno : got ? got : -EFAULT;
}

static int top_copy(struct thread_memory *memory, uint64_t from)
{
	ssize_t got = thread_copy(memory, from, memory->top, FIRST_BYTES);

	memory->top_from = from;
	memory->top_bytes = got > 0 ? (size_t)got : 0;
	return got < 0 ? (int)got : 0;
}

int thread_memory_begin(struct thread_memory *memory, int64_t tid, uint64_t sp)
{
	memory->tid = tid;
	memory->elsewhere_bytes = 0;
	memory->calls_left = CALLS_MAX;
	return top_copy(memory, sp);
}

/* Makes the copy reach to there, twice as long at least. */
static int top_grow(struct thread_memory *memory, size_t bytes)
{
	size_t wanted = 2 * memory->top_bytes > bytes ? 2 * memory->top_bytes : bytes;
	ssize_t got;

	wanted = wanted < memory->most_bytes ? wanted : memory->most_bytes;
	got = thread_copy(memory, memory->top_from + memory->top_bytes,
			  memory->top + memory->top_bytes, wanted - memory->top_bytes);
	if (got < 0)
		return (int)got;
	memory->top_bytes += (size_t)got;
	return bytes <= memory->top_bytes ? 0 : -EFAULT;
}

static bool within(uint64_t address, size_t bytes, uint64_t from, size_t held)
{
	return address >= from && address - from < held && bytes <= held - (address - from);
}

static int elsewhere_read(struct thread_memory *memory, uint64_t address, void *to, size_t bytes)
{
	ssize_t got;

	if (!within(address, bytes, memory->elsewhere_from, memory->elsewhere_bytes)) {
		got = thread_copy(memory, address, memory->elsewhere, sizeof(memory->elsewhere));
		memory->elsewhere_from = address;
		memory->elsewhere_bytes = got > 0 ? (size_t)got : 0;
		if (got < 0)
			return (int)got;
	}
	if (bytes > memory->elsewhere_bytes)
		return -EFAULT;
	memcpy(to, memory->elsewhere + (address - memory->elsewhere_from), bytes);
	return 0;
}

int thread_memory_read(struct thread_memory *memory, uint64_t address, void *to, size_t bytes)
{
	uint64_t distance = address - memory->top_from;
	int err = 0;

	if (address < memory->top_from || distance > 2 * memory->most_bytes)
		return elsewhere_read(memory, address, to, bytes);
	if (distance + bytes > memory->most_bytes) {
		/* what was passed is not looked at again */
		err = top_copy(memory, address);
		distance = 0;
	}
	if (!err && distance + bytes > memory->top_bytes)
		err = top_grow(memory, distance + bytes);
	if (!err)
		memcpy(to, memory->top + distance, bytes);
	return err;
}
