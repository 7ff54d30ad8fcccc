/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the requests of an io_uring(7) that only let time pass. The kernel does not list them;
 * their entries remain in the submission ring, in the process's memory, until others overwrite
 * them. */
#include "waits/waits.h"
#include "proc/proc.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RING_LINK "anon_inode:[io_uring]"
#define ENTRIES_AT 0x10000000ull /* IORING_OFF_SQES: offset of the mapping with the entries */
#define ENTRY_BYTES 64		 /* struct io_uring_sqe; its first byte is the operation */
#define OP_TIMEOUT 11		 /* IORING_OP_TIMEOUT, IORING_OP_LINK_TIMEOUT */
#define OP_LINK_TIMEOUT 15
#define LOOK_MAX 64 /* limit of requests that are read */

/* Address of the entries of the process's only ring; 0: it has none, or several. */
static uint64_t entries_find(const struct wait *wait)
{
	int fd = proc_file_open(wait_root(wait), wait->pid, wait->tid, "maps"), rings = 0;
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	unsigned long long start, offset;
	char line[PATH_MAX + 128];
	uint64_t found = 0;

	if (!maps && fd >= 0)
		close(fd);
	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, RING_LINK) ||
		    sscanf(line, "%llx-%*x %*s %llx", &start, &offset) != 2 || offset != ENTRIES_AT)
			continue;
		found = start;
		rings++;
	}
	if (maps)
		fclose(maps);
	return rings == 1 ? found : 0;
}

int64_t ring_timeouts(const struct wait *wait, uint32_t taken, uint32_t mask, int64_t count)
{
	int64_t timeouts = 0;
	uint64_t entries;
	uint8_t operation;

	if (count <= 0 || count > LOOK_MAX || count > (int64_t)mask + 1)
		return 0;
	entries = entries_find(wait);
	for (uint32_t i = 1; entries && i <= count; i++) {
		uint64_t at = entries + (uint64_t)((taken - i) & mask) * ENTRY_BYTES;

		if (!wait_memory_read(wait, at, &operation, sizeof(operation)))
			return 0;
		timeouts += operation == OP_TIMEOUT || operation == OP_LINK_TIMEOUT;
	}
	return timeouts;
}
