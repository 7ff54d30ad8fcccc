/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests in flight of io_uring(7) and of libaio's io_getevents(2). */
#include "waits/waits.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFLIGHT_MAX (1 << 24) /* a larger value is a difference that went below 0 */

/* Copy of struct aio_ring of fs/aio.c, which is at the address that is the context's id; since
 * 2.6. */
struct aio_ring {
	uint32_t id, nr, head, tail, magic, compat_features, incompat_features, header_length;
};
#define AIO_RING_MAGIC 0xa10a10a1

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

static void inflight_describe(struct wait *wait, const char *what, const char *at_least,
			      int64_t count)
{
	wait->facts.kind = WAIT_IO;
	text_add_string(wait->text, what);
	if (count < 0 || count > INFLIGHT_MAX)
		return;
	wait->facts.inflight = count;
	text_add_format(wait->text, " %s%lld in flight", at_least, (long long)count);
}

/* Counts the requests in flight from fdinfo: CachedSqHead (requests that the kernel took) minus
 * CachedCqTail (completions that it posted), since 5.16; before that they are not known. A request
 * that completes several times, or never, spoils the difference, which is then not reported.
 * PollList lists the requests that only wait until a descriptor is ready; timeouts are searched for
 * among the requests that were taken last. */
void uring_describe(struct wait *wait)
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

/* Counts the requests in flight of libaio, which the kernel does not show: at least as many as the
 * thread still waits for. */
void aio_describe(struct wait *wait)
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
