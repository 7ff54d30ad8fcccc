/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/user_memory.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define PAGEMAP_PRESENT (1ull << 63)

/* Whether the page at address is in memory. */
static bool page_is_there(int pagemap, uint64_t address, uint64_t page_bytes)
{
	off_t at = (off_t)(address / page_bytes * sizeof(uint64_t));
	uint64_t entry;

	return pread(pagemap, &entry, sizeof(entry), at) == sizeof(entry) &&
	       entry & PAGEMAP_PRESENT;
}

/* Bytes from address on that lie in pages that are there. */
static size_t bytes_there(int pagemap, uint64_t address, size_t size)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t there = 0;

	while (there < size && page_is_there(pagemap, address + there, page_bytes))
		there += page_bytes - (address + there) % page_bytes;
	return there < size ? there : size;
}

ssize_t user_memory_read(const char *root, int64_t pid, int64_t tid, uint64_t address, void *bytes,
			 size_t size)
{
	int pagemap, memory;
	ssize_t length;

	if (address > INT64_MAX - size)
		return -EFAULT;
	pagemap = proc_file_open(root, pid, tid, "pagemap");
	if (pagemap < 0)
		return pagemap;
	size = bytes_there(pagemap, address, size);
	close(pagemap);
	if (!size)
		return -EFAULT;
	memory = proc_file_open(root, pid, tid, "mem");
	if (memory < 0)
		return memory;
	length = pread(memory, bytes, size, (off_t)address);
	if (length <= 0)
		length = length ? -errno : -EFAULT;
	close(memory);
	return length;
}

ssize_t user_text_read(const char *root, int64_t pid, int64_t tid, uint64_t address, char *bytes,
		       size_t size)
{
	ssize_t length = user_memory_read(root, pid, tid, address, bytes, size);

	if (length < 0)
		return length;
	/* its end is in a page that is not there, or it has none */
	return memchr(bytes, '\0', (size_t)length) ? (ssize_t)strlen(bytes) : -EFAULT;
}
