/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of descriptors that a thread waits for: poll, select, epoll. */
#include "waits/waits.h"
#include "base/text.h"
#include "waits/wait_set.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define SELECT_FDS 1024 /* FD_SETSIZE; programs with larger sets of their own make are cut */
#define POLL_FDS 1024	/* looked at for those that are not in use */

/* poll(2): a negative descriptor is passed over. */
void poll_tell(struct wait *wait)
{
	static struct pollfd polled[POLL_FDS];
	uint32_t given = (uint32_t)wait->arg[1], count = given < POLL_FDS ? given : POLL_FDS;
	struct wait_set list = {0};

	if (!given) {
		timer_tell(wait);
		return;
	}
	wait->facts.kind = WAIT_SET;
	if (!wait_memory_read(wait, wait_address(wait, 0), polled, count * sizeof(*polled)))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (polled[i].fd >= 0)
			wait_set_add(&list, polled[i].fd);
	list.cut = count < given;
	wait_set_tell(wait, &list);
}

/* select(2): a bit for each descriptor, in up to three sets of words of the host's byte order; on
 * the little endian hosts that tsnap runs on, 32-bit words look the same. */
void select_tell(struct wait *wait)
{
	int given = (int)wait->arg[0], fds = given < SELECT_FDS ? given : SELECT_FDS;
	uint8_t any[SELECT_FDS / 8] = {0}, set[SELECT_FDS / 8];
	size_t bytes = fds > 0 ? (size_t)(fds + 63) / 64 * 8 : 0;
	struct wait_set list = {0};

	wait->facts.kind = WAIT_SET;
	/* the first one of i386 has its arguments in memory: its nfds is an address */
	if (wait->compat && given > SELECT_FDS)
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
		wait_set_tell(wait, &list);
	else
		timer_tell(wait);
}

/* fdinfo has a line "tfd: 5 events: ..." for each descriptor of the set, proc(5), since 3.8. */
void epoll_tell(struct wait *wait)
{
	struct wait_set list = {0};
	const char *text = wait_fdinfo(wait, &list.cut);

	wait->facts.kind = WAIT_SET;
	if (!*text)
		return;
	for (const char *line = text; (line = strstr(line, "tfd:")); line += strlen("tfd:"))
		wait_set_add(&list, atoi(line + strlen("tfd:")));
	list.kept = true;
	wait_set_tell(wait, &list);
}
