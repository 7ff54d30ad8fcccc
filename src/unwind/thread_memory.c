/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/thread_memory.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/present_pages.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Most stacks end within this; copying 64 KB takes three times as long. */
#define FIRST_BYTES 8192
#define CALLS_MAX 128
#define PAGEMAP_OLD_NS (1 * NS_PER_SECOND)
#define STEPS_MAX 16384 /* some thousand frames with such tables as are in use; 0.2 ms */

void thread_memory_init(struct thread_memory *memory, const char *proc_root, bool by_file,
			size_t most_bytes)
{
	*memory = (struct thread_memory){.most_bytes = most_bytes < FIRST_BYTES ? FIRST_BYTES
										: most_bytes};
	memory->proc_root = proc_root;
	memory->by_file = by_file;
	memory->mem = memory->pagemap = -1;
	memory->pagemap_count = descriptors_share(THREAD_MEMORY_PAGEMAPS, 16);
	memory->pagemap_count += !memory->pagemap_count;
	memory->top = memory_get(memory->most_bytes);
}

void thread_memory_done(struct thread_memory *memory)
{
	for (int i = 0; i < THREAD_MEMORY_PAGEMAPS; i++)
		if (memory->pagemaps[i].id)
			close(memory->pagemaps[i].fd);
	free(memory->top);
	*memory = (struct thread_memory){.top = NULL};
}

static ssize_t file_copy(int fd, uint64_t from, void *to, size_t bytes)
{
	ssize_t got = from > INT64_MAX - bytes ? 0 : pread(fd, to, bytes, (off_t)from);

	/* EIO: no memory is there */
	return got > 0 ? got : got && errno != EIO ? -errno : -EFAULT;
}

/* Opens the pagemap of the thread in a slot. Returns 0 or -errno. */
static int pagemap_open(const struct thread_memory *memory, struct thread_memory_pagemap *pagemap,
			int64_t id, int64_t now_ns)
{
	/* the process that a system call with this id reads */
	int fd = proc_file_open(memory->by_file ? memory->proc_root : "/proc", 0, memory->tid,
				"pagemap");

	if (pagemap->id)
		close(pagemap->fd);
	*pagemap = (struct thread_memory_pagemap){fd < 0 ? 0 : id, now_ns, fd};
	return fd < 0 ? fd : 0;
}

/* Returns how many bytes from an address on are in memory, or -errno. */
static ssize_t bytes_there(struct thread_memory *memory, uint64_t from, size_t bytes)
{
	int64_t id = memory->pid ? memory->pid : memory->tid, now_ns = clock_monotonic_ns();
	struct thread_memory_pagemap *pagemap =
		&memory->pagemaps[(uint64_t)id % memory->pagemap_count];
	bool known = pagemap->id == id && now_ns - pagemap->opened_ns < PAGEMAP_OLD_NS;
	ssize_t there = known ? (ssize_t)present_bytes(pagemap->fd, from, bytes) : 0;
	int err;

	if (there)
		return there;
	/* also where nothing was there: after an exec the pagemap is empty */
	err = pagemap_open(memory, pagemap, id, now_ns);
	if (err == -ENOENT && access("/proc/self/pagemap", F_OK)) {
		memory->unchecked = true; /* kernel without CONFIG_PROC_PAGE_MONITOR */
		return (ssize_t)bytes;
	}
	return err ? err : (ssize_t)present_bytes(pagemap->fd, from, bytes);
}

/* Copies memory as far as it is there. Returns the bytes copied, or -errno. */
static ssize_t thread_copy(struct thread_memory *memory, uint64_t from, void *to, size_t bytes)
{
	/* two parts, cut at a page: a copy that meets a missing page ends before it */
	struct iovec local = {to, bytes}, remote[2];
	size_t first = THREAD_MEMORY_PAGE_BYTES - from % THREAD_MEMORY_PAGE_BYTES;
	ssize_t got;

	if (!memory->calls_left)
		return -E2BIG;
	memory->calls_left--;
	if (memory->mem >= 0) {
		if (memory->pagemap >= 0)
			bytes = present_bytes(memory->pagemap, from, bytes);
		return bytes ? file_copy(memory->mem, from, to, bytes) : -EFAULT;
	}
	if (avoids_memory(memory->pid ? memory->pid : memory->tid))
		return -ETIMEDOUT;
	if (!memory->unchecked) {
		got = bytes_there(memory, from, bytes);
		if (got <= 0)
			return got ? got : -EFAULT;
		local.iov_len = bytes = (size_t)got;
	}
	if (memory->by_file) {
		int fd = proc_file_open(memory->proc_root, 0, memory->tid, "mem");

		got = fd < 0 ? fd : file_copy(fd, from, to, bytes);
		if (fd >= 0)
			close(fd);
		return got;
	}
	first = first < bytes ? first : bytes;
	/* the address is the thread's and is not dereferenced here */
	memcpy(&remote[0].iov_base, &from, sizeof(from));
	remote[0].iov_len = first;
	from += first;
	memcpy(&remote[1].iov_base, &from, sizeof(from));
	remote[1].iov_len = bytes - first;
	got = process_vm_readv((pid_t)memory->tid, &local, 1, remote, bytes > first ? 2 : 1, 0);
	if (got < 0 && errno == ENOSYS) { /* kernel without CONFIG_CROSS_MEMORY_ATTACH */
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
	memory->top_ends = false;
	return got < 0 ? (int)got : 0;
}

static void memory_begin(struct thread_memory *memory, int64_t tid)
{
	memory->tid = tid;
	for (size_t i = 0; i < THREAD_MEMORY_PAGES; i++)
		memory->pages[i].address = 0;
	memory->calls_left = CALLS_MAX;
	memory->steps_left = STEPS_MAX;
}

int thread_memory_begin(struct thread_memory *memory, int64_t tid, uint64_t sp)
{
	memory_begin(memory, tid);
	memory->moving = false;
	return top_copy(memory, sp);
}

void thread_memory_begin_copied(struct thread_memory *memory, int64_t tid, uint64_t sp,
				const void *copy, size_t bytes)
{
	memory_begin(memory, tid);
	memory->moving = true;
	memory->top_from = sp;
	memory->top_bytes = bytes < memory->most_bytes ? bytes : memory->most_bytes;
	if (memory->top_bytes)
		memcpy(memory->top, copy, memory->top_bytes);
}

void thread_memory_begin_at(struct thread_memory *memory, uint64_t address)
{
	unsigned int calls_left = memory->calls_left;

	thread_memory_begin(memory, memory->tid, address);
	memory->calls_left = calls_left;
}

void thread_memory_again(struct thread_memory *memory)
{
	unsigned int calls_left = memory->calls_left;

	/* no stack is near what is read */
	thread_memory_begin_copied(memory, memory->tid, UINT64_MAX, NULL, 0);
	memory->moving = false;
	memory->calls_left = calls_left;
}

/* Grows the copy to that many bytes, and to twice its size at least. */
static int top_grow(struct thread_memory *memory, size_t bytes)
{
	size_t wanted = 2 * memory->top_bytes > bytes ? 2 * memory->top_bytes : bytes;
	ssize_t got;

	wanted = wanted < memory->most_bytes ? wanted : memory->most_bytes;
	got = thread_copy(memory, memory->top_from + memory->top_bytes,
			  memory->top + memory->top_bytes, wanted - memory->top_bytes);
	memory->top_bytes += got > 0 ? (size_t)got : 0;
	memory->top_ends = bytes > memory->top_bytes;
	return got < 0 ? (int)got : memory->top_ends ? -EFAULT : 0;
}

/* Returns the page that begins at an address, or NULL. */
static const struct thread_memory_page *page_get(struct thread_memory *memory, uint64_t address,
						 int *err)
{
	struct thread_memory_page *page =
		&memory->pages[address / THREAD_MEMORY_PAGE_BYTES % THREAD_MEMORY_PAGES];
	ssize_t got;

	if (page->address == address)
		return page;
	page->address = 0;
	got = thread_copy(memory, address, page->bytes, sizeof(page->bytes));
	if (got != sizeof(page->bytes)) {
		*err = got < 0 ? (int)got : -EFAULT;
		return NULL;
	}
	page->address = address;
	return page;
}

static int elsewhere_read(struct thread_memory *memory, uint64_t address, char *to, size_t bytes)
{
	int err = 0;

	while (bytes) {
		size_t at = address % THREAD_MEMORY_PAGE_BYTES;
		size_t part = THREAD_MEMORY_PAGE_BYTES - at;
		/* the first page has nothing, and its address 0 stands for no page */
		const struct thread_memory_page *page =
			address >= THREAD_MEMORY_PAGE_BYTES ? page_get(memory, address - at, &err)
							    : NULL;

		if (!page)
			return err ? err : -EFAULT;
		part = part < bytes ? part : bytes;
		memcpy(to, page->bytes + at, part);
		to += part;
		address += part;
		bytes -= part;
	}
	return 0;
}

int thread_memory_read_code(struct thread_memory *memory, uint64_t address, void *to, size_t bytes)
{
	return elsewhere_read(memory, address, to, bytes);
}

int thread_memory_read(struct thread_memory *memory, uint64_t address, void *to, size_t bytes)
{
	uint64_t distance = address - memory->top_from;
	int err = 0;

	if (memory->moving) {
		if (address < memory->top_from)
			return -EFAULT;
		if (distance > memory->top_bytes || bytes > memory->top_bytes - distance)
			return -ENOSPC;
		memcpy(to, memory->top + distance, bytes);
		return 0;
	}
	if (address < memory->top_from || distance > 2 * memory->most_bytes ||
	    (memory->top_ends && distance + bytes > memory->top_bytes))
		return elsewhere_read(memory, address, to, bytes);
	if (distance + bytes > memory->most_bytes) {
		/* the copied part was passed, and is not looked at again */
		err = top_copy(memory, address);
		distance = 0;
	}
	if (!err && distance + bytes > memory->top_bytes)
		err = top_grow(memory, distance + bytes);
	if (err == -EFAULT && memory->top_ends)
		return elsewhere_read(memory, address, to, bytes);
	if (!err)
		memcpy(to, memory->top + distance, bytes);
	return err;
}
