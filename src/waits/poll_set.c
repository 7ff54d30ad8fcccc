/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of descriptors that a thread waits for: poll, select, epoll. */
#include "waits/waits.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/text.h"
#include "waits/wait_set.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SELECT_FDS 1024 /* FD_SETSIZE; larger sets, which a program has to make itself, are cut */
#define POLL_FDS 1024	/* limit of entries that are read, with the unused (negative) ones */

/* Limits for epoll sets that take long to list. The kernel lists a set as a whole, however little
 * of it is read: 30 ms for 60 000 descriptors. A set that takes LONG_SET_NS or more is listed for
 * 1/LONG_SET_SHARE of the time. */
#define LONG_SET_NS NS_PER_MS
#define LONG_SET_SHARE 100
#define LONG_SETS_MAX 4096

/* Describes poll(2), which ignores negative descriptors. */
void poll_describe(struct wait *wait)
{
	static struct pollfd polled[POLL_FDS];
	uint32_t given = (uint32_t)wait->arg[1], count = given < POLL_FDS ? given : POLL_FDS;
	struct wait_set list = {0};

	if (!given) {
		timer_describe(wait);
		return;
	}
	wait->facts.kind = WAIT_SET;
	if (!wait_memory_read(wait, wait_address(wait, 0), polled, count * sizeof(*polled)))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (polled[i].fd >= 0)
			wait_set_add(&list, polled[i].fd);
	list.cut = count < given;
	wait_set_describe(wait, &list);
}

/* Describes select(2): up to three sets with a bit for each descriptor, in words of the host's byte
 * order; on the little-endian hosts that tsnap runs on, 32-bit words look the same. */
void select_describe(struct wait *wait)
{
	int given = (int)wait->arg[0], fds = given < SELECT_FDS ? given : SELECT_FDS;
	uint8_t any[SELECT_FDS / 8] = {0}, set[SELECT_FDS / 8];
	size_t bytes = given > 0 ? (size_t)(fds + 63) / 64 * 8 : 0;
	struct wait_set list = {0};

	wait->facts.kind = WAIT_SET;
	/* the old select of i386 has its arguments in memory: its first argument is an address,
	 * above 2 GiB on the stack of a process on a 64-bit kernel; a number below 0 is no call
	 * that sleeps */
	if (given < 0 || (wait->compat && given > SELECT_FDS))
		return;
	for (int arg = 1; arg <= 3; arg++) {
		if (!bytes || !wait_address(wait, arg))
			continue;
		if (!wait_memory_read(wait, wait_address(wait, arg), set, bytes))
			return;
		for (size_t i = 0; i < bytes; i++)
			any[i] |= set[i];
	}
	for (int fd = 0; fd < fds; fd++)
		if (any[fd / 8] >> fd % 8 & 1)
			wait_set_add(&list, fd);
	list.cut = fds < given;
	if (list.count)
		wait_set_describe(wait, &list);
	else
		timer_describe(wait);
}

/* An epoll set that the kernel took long to list. */
struct long_set {
	struct cache_entry entry; /* key: process and descriptor */
	int64_t again_ns, count;
	bool cut;
};

void long_sets_init(struct cache *sets)
{
	*sets = (struct cache){.entry_bytes = sizeof(struct long_set),
			       .entries_max = LONG_SETS_MAX};
}

/* Lists the epoll set from fdinfo, which has a line "tfd: 5 events: ..." for each descriptor,
 * proc(5), since 3.8. False: fdinfo can't be read. */
static bool epoll_list(struct wait *wait, struct wait_set *list)
{
	const char *text = wait_fdinfo(wait, &list->cut);

	for (const char *line = text; (line = strstr(line, "tfd:")); line += strlen("tfd:"))
		wait_set_add(list, atoi(line + strlen("tfd:")));
	return *text;
}

/* Lists the epoll set. Of a set that takes long only the number of descriptors is used: a recent
 * count will do. */
static bool epoll_list_or_known(struct wait *wait, struct wait_set *list)
{
	uint64_t key = (uint64_t)wait->pid << 32 | (uint32_t)wait->fd;
	struct long_set *known = cache_find(wait_long_sets(wait), key);
	int64_t began_ns = clock_monotonic_ns(), took_ns;
	bool added;

	if (known && wait->now_ns < known->again_ns) {
		list->count = known->count;
		list->cut = known->cut;
		return true;
	}
	if (!epoll_list(wait, list))
		return false;
	took_ns = clock_monotonic_ns() - began_ns;
	if (took_ns < LONG_SET_NS || list->count <= WAIT_SET_FDS)
		return true;
	known = cache_get(wait_long_sets(wait), key, wait->now_ns, &added);
	known->count = list->count;
	known->cut = list->cut;
	known->again_ns = wait->now_ns + LONG_SET_SHARE * took_ns;
	return true;
}

void epoll_describe(struct wait *wait)
{
	struct wait_set list = {.kept = true};

	wait->facts.kind = WAIT_SET;
	if (epoll_list_or_known(wait, &list))
		wait_set_describe(wait, &list);
}
