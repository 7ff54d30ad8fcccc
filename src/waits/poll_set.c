/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of descriptors that a thread waits for: poll, select, epoll. */
#include "waits/waits.h"
#include "base/text.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 4	/* so many are told one by one */
#define SELECT_FDS 1024 /* FD_SETSIZE; programs with larger sets of their own make are cut */
#define POLL_FDS 1024	/* looked at for those that are not in use */

struct fd_list {
	int64_t count;
	int fds[TOLD_MAX]; /* the first */
};

static void list_add(struct fd_list *list, int fd)
{
	if (list->count < TOLD_MAX)
		list->fds[list->count] = fd;
	list->count++;
}

/* "2 fds: pipe from 77 tar, tcp 10.0.0.9:5432" */
static void list_tell(struct wait *wait, const struct fd_list *list, bool cut)
{
	text_add_format(wait->text, "%lld%s fd%s", (long long)list->count, cut ? "+" : "",
			list->count == 1 ? "" : "s");
	for (int i = 0; list->count <= TOLD_MAX && i < (int)list->count; i++) {
		text_add_string(wait->text, i ? ", " : ": ");
		descriptor_tell(wait, list->fds[i]);
	}
	/* what one descriptor waits for, the thread does */
	if (list->count != 1) {
		wait->facts = wait_facts_absent;
		wait->facts.kind = WAIT_SET;
	}
	wait->facts.count = list->count;
}

/* poll(2): a negative descriptor is passed over. */
void poll_tell(struct wait *wait)
{
	static struct pollfd polled[POLL_FDS];
	uint32_t given = (uint32_t)wait->arg[1], count = given < POLL_FDS ? given : POLL_FDS;
	struct fd_list list = {0};

	if (!given) {
		timer_tell(wait);
		return;
	}
	if (!wait_memory_read(wait, wait_address(wait, 0), polled, count * sizeof(*polled)))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (polled[i].fd >= 0)
			list_add(&list, polled[i].fd);
	list_tell(wait, &list, count < given);
}

/* select(2): a bit for each descriptor, in up to three sets of words of the host's byte order; on
 * the little endian hosts that tsnap runs on, 32-bit words look the same. */
void select_tell(struct wait *wait)
{
	int given = (int)wait->arg[0], fds = given < SELECT_FDS ? given : SELECT_FDS;
	uint8_t any[SELECT_FDS / 8] = {0}, set[SELECT_FDS / 8];
	size_t bytes = fds > 0 ? (size_t)(fds + 63) / 64 * 8 : 0;
	struct fd_list list = {0};

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
			list_add(&list, fd);
	if (list.count)
		list_tell(wait, &list, fds < given);
	else
		timer_tell(wait);
}

/* fdinfo has a line "tfd: 5 events: ..." for each descriptor of the set, proc(5), since 3.8. */
void epoll_tell(struct wait *wait)
{
	struct fd_list list = {0};
	bool cut;
	const char *text = wait_fdinfo(wait, &cut);

	wait->facts.kind = WAIT_SET;
	if (!*text)
		return;
	for (const char *line = text; (line = strstr(line, "tfd:")); line += strlen("tfd:"))
		list_add(&list, atoi(line + strlen("tfd:")));
	list_tell(wait, &list, cut);
}
