/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests in flight of io_uring(7) and of libaio's io_getevents(2). */
#include "waits/wait_object.h"
#include "proc/proc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFLIGHT_MAX (1 << 24) /* a larger value is a difference that went below 0 */

static void inflight_describe(struct wait *wait, const char *what, const char *at_least,
			      int64_t count)
{
	text_add_string(wait->text, what);
	if (count < 0 || count > INFLIGHT_MAX)
		return;
	wait->facts.inflight = count;
	text_add_format(wait->text, " %s%lld in flight", at_least, (long long)count);
}

/* --- io_uring */

#define RING_LINK "anon_inode:[io_uring]"
#define ENTRIES_AT 0x10000000ull /* IORING_OFF_SQES: offset of the mapping with the entries */
#define ENTRY_BYTES 64		 /* struct io_uring_sqe; its first byte is the operation */
#define OP_TIMEOUT 11		 /* IORING_OP_TIMEOUT, IORING_OP_LINK_TIMEOUT */
#define OP_LINK_TIMEOUT 15
#define LOOK_MAX 64 /* limit of requests that are read */

/* Address of the entries of the process's only ring; 0: it has none, or several. */
static uint64_t entries_find(const struct wait *wait)
{
	FILE *maps = proc_file_stream(wait->waits->root, wait->pid, wait->tid, "maps");
	unsigned long long start, offset;
	char line[PATH_MAX + 128];
	uint64_t found = 0;
	int rings = 0;

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

/* Counts the requests that only let time pass, among the last `count` that the ring of wait->fd
 * took. The kernel does not list them; their entries remain in the submission ring, in the
 * process's memory, until others overwrite them. taken: number of requests that it has ever taken;
 * mask: the ring's. */
static int64_t ring_timeouts(const struct wait *wait, uint32_t taken, uint32_t mask, int64_t count)
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

static uint32_t mask_find(const char *text)
{
	const char *at = strstr(text, "SqMask:");

	return at ? (uint32_t)strtoul(at + strlen("SqMask:"), NULL, 16) : 0;
}

static bool number_find(const char *text, const char *key, uint32_t *number)
{
	const char *at = strstr(text, key);

	if (at)
		*number = (uint32_t)strtoul(at + strlen(key), NULL, 10);
	return at != NULL;
}

/* Counts the requests in flight from fdinfo: CachedSqHead (requests that the kernel took) minus
 * CachedCqTail (completions that it posted), since 5.16; before that they are not known. A request
 * that completes several times, or never, spoils the difference, which is then not reported.
 * PollList lists the requests that only wait until a descriptor is ready; timeouts are searched for
 * among the requests that were taken last. */
static void uring_describe(struct wait *wait)
{
	bool cut;
	const char *text = wait_fdinfo(wait, &cut), *armed;
	uint32_t taken = 0, answered, mask = mask_find(text);
	int64_t count = -1;

	if (number_find(text, "CachedSqHead:", &taken) &&
	    number_find(text, "CachedCqTail:", &answered))
		count = (int32_t)(taken - answered);
	inflight_describe(wait, "io_uring", "", count);
	if (wait->facts.inflight == ABSENT)
		return;
	armed = strstr(text, "\nPollList:");
	if (!armed) {
		wait->facts.armed = ring_timeouts(wait, taken, mask, count);
		return;
	}
	wait->facts.armed = cut ? count : 0; /* a ring whose PollList does not fit is a server's */
	if (cut)
		return;
	while ((armed = strstr(armed, "op="))) {
		wait->facts.armed++;
		armed += strlen("op=");
	}
	if (wait->facts.armed < count)
		wait->facts.armed += ring_timeouts(wait, taken, mask, count);
}

const struct wait_object uring_object = {
	.kind = WAIT_IO,
	.serves = SERVES_NONE,
	.links = (const struct wait_link[]){{RING_LINK, "io_uring"}, {0}},
	.describe = uring_describe,
	.edge = disk_edge,
};

/* --- libaio */

/* Copy of struct aio_ring of fs/aio.c, which is at the address that is the context's id; since
 * 2.6. */
struct aio_ring {
	uint32_t id, nr, head, tail, magic, compat_features, incompat_features, header_length;
};
#define AIO_RING_MAGIC 0xa10a10a1

/* Counts the requests in flight of libaio, which the kernel does not show: at least as many as the
 * thread still waits for. */
static void aio_describe(struct wait *wait)
{
	int64_t least = wait->arg[1], ready;
	struct aio_ring ring;

	if (!wait_memory_read(wait, wait_address(wait, 0), &ring, sizeof(ring)) ||
	    ring.magic != AIO_RING_MAGIC || !ring.nr || ring.head >= ring.nr ||
	    ring.tail >= ring.nr) {
		inflight_describe(wait, "aio", "", -1);
		return;
	}
	ready = (ring.tail + ring.nr - ring.head) % ring.nr;
	inflight_describe(wait, "aio", "at least ", least > ready ? least - ready : 0);
}

const struct wait_object aio_object = {
	.kind = WAIT_IO,
	.serves = SERVES_NONE,
	.calls =
		(const struct wait_call[]){
			{"io_getevents", aio_describe, 0},
			{"io_pgetevents", aio_describe, 0},
			{"io_pgetevents_time64", aio_describe, 0},
			{0},
		},
	.edge = disk_edge,
};
