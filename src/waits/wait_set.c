/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/wait_set.h"
#include "waits/sockets.h"
#include "waits/tcp_request.h"
#include "waits/waits.h"
#include "base/clock.h"
#include "base/text.h"
#include "sample/sample.h"

#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 4 /* limit of descriptors that are described one by one */

/* Sockets of buses and displays: connections to them are open forever, and the other side speaks
 * first. */
static const char *const buses[] = {
	"/run/dbus/",	   "/var/run/dbus/",   "/run/user/",
	"/tmp/.X11-unix/", "@/tmp/.X11-unix/", "@/tmp/dbus-",
};

void wait_set_add(struct wait_set *set, int fd)
{
	if (set->count < WAIT_SET_FDS)
		set->fds[set->count] = fd;
	set->count++;
}

static bool is_of_client(const struct wait_facts *facts)
{
	return facts->kind == WAIT_SOCKET && facts->connected && !facts->listens &&
	       !facts->accepts_there;
}

static bool is_bus(const char *remote)
{
	for (size_t i = 0; remote && i < sizeof(buses) / sizeof(*buses); i++)
		if (!strncmp(remote, buses[i], strlen(buses[i])))
			return true;
	return false;
}

void wait_set_sum_add(struct wait_set_sum *sum, const struct wait_facts *facts, bool own,
		      bool has_request, const char *connection, const char *remote)
{
	if (own)
		return;
	sum->others++;
	sum->listens += facts->kind == WAIT_SOCKET && facts->listens;
	sum->connects |= is_of_client(facts);
	sum->requesting += has_request;
	/* if several answers are due, the connection with the highest local port counts: a
	 * client's, if there is one */
	if (sum->others > 1 &&
	    (!has_request || (sum->has_request && facts->local_port <= sum->one.local_port)))
		return;
	sum->one = *facts;
	sum->connection = connection;
	sum->remote = remote;
	sum->has_request = has_request;
}

/* True if there is only one descriptor that counts, and it decides as if the thread read from
 * it. */
static bool one_decides(const struct wait_set_sum *sum, bool kept)
{
	if (sum->others != 1 || sum->one.kind == WAIT_UNKNOWN)
		return false;
	return !is_of_client(&sum->one) || sum->has_request || !(kept || is_bus(sum->remote));
}

struct wait_facts wait_set_decide(const struct wait_set_sum *sum, int64_t count, bool kept)
{
	struct wait_facts facts = wait_facts_absent;

	if (one_decides(sum, kept)) {
		facts = sum->one;
	} else {
		facts.kind = WAIT_SET;
		facts.listens = sum->listens && sum->listens == sum->others;
		if (sum->has_request && !sum->listens) {
			facts.has_request = true;
			facts.request_ns = sum->one.request_ns;
			facts.pid = sum->one.pid;
			facts.local_port = sum->one.local_port;
			facts.remote_port = sum->one.remote_port;
		}
		if (sum->requesting == 1) {
			facts.requested_pid = sum->one.pid;
			facts.requested_inode = sum->one.inode;
		}
	}
	facts.count = count;
	facts.open = sum->open;
	facts.changes = kept && sum->connects;
	return facts;
}

/* Adds one descriptor to wait->text, and its facts to the sum. True if it is an end of a pipe or a
 * socket pair, and the process has the other end, too. */
static bool part_describe(struct wait *wait, int fd, struct wait_set_sum *sum)
{
	const struct socket_facts *socket;
	bool pending = wait->pending, own;
	int64_t age_ms = REQUEST_NONE;

	wait->pending = false;
	wait->facts = wait_facts_absent;
	own = descriptor_describe(wait, fd);
	socket = wait->facts.kind == WAIT_SOCKET ? wait->socket : NULL;
	sum->open |= wait->pending && socket && !socket->remote && !socket->listens &&
		     !socket->peer_inode;
	if (socket && is_of_client(&wait->facts))
		age_ms = socket_request_age_ms(wait_sockets(wait), socket->inode);
	if (age_ms > 0)
		wait->facts.request_ns = wait->now_ns - age_ms * NS_PER_MS;
	wait_set_sum_add(sum, &wait->facts, own, age_ms != REQUEST_NONE,
			 socket ? socket->connection : NULL, socket ? socket->remote : NULL);
	wait->pending |= pending;
	return (wait->facts.kind == WAIT_PIPE || (socket && !wait->facts.connected)) &&
	       (own || wait->facts.pid == wait->pid);
}

static int texts_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds ": eventfd count 0, 2x pipe", in an order that descriptors' numbers don't decide. */
static void texts_tell(struct wait *wait, const char **told, int count)
{
	int same;

	qsort(told, (size_t)count, sizeof(*told), texts_compare);
	for (int i = 0; i < count; i += same) {
		for (same = 1; i + same < count && !strcmp(told[i], told[i + same]);)
			same++;
		text_add_string(wait->text, i ? ", " : ": ");
		if (same > 1)
			text_add_format(wait->text, "%dx ", same);
		text_add_string(wait->text, told[i]);
	}
}

static void count_tell(struct wait *wait, const struct wait_set *set, int64_t count)
{
	text_add_format(wait->text, "%lld%s fd%s", (long long)count, set->cut ? "+" : "",
			count == 1 ? "" : "s");
}

/* Describes each descriptor. Own ends are left out if there are others: a thread's way to wake
 * another one of its process says nothing about the wait. */
static void parts_tell(struct wait *wait, const struct wait_set *set, struct wait_set_sum *sum)
{
	static struct text texts[TOLD_MAX];
	const char *told[TOLD_MAX], *own[TOLD_MAX];
	struct text *whole = wait->text;
	int count = 0, owned = 0;

	for (int i = 0; i < (int)set->count; i++) {
		wait->text = &texts[count];
		text_clear(wait->text);
		if (part_describe(wait, set->fds[i], sum))
			own[owned++] = wait->facts.kind == WAIT_PIPE ? "own pipe" : "own socket";
		else
			count++;
	}
	for (int i = 0; i < count; i++)
		told[i] = text_string(&texts[i]);
	wait->text = whole;
	count_tell(wait, set, count ? count : owned);
	texts_tell(wait, count ? told : own, count ? count : owned);
}

/* Adds the facts of a set that is too large for a text of each descriptor. The process at the other
 * end is searched only if an answer is due on exactly one of them. */
static void parts_look(struct wait *wait, const struct wait_set *set, struct wait_set_sum *sum)
{
	static struct text unread;
	struct wait part = *wait;
	int requesting = -1;

	part.text = &unread;
	part.numbers_only = true;
	for (int i = 0; i < (int)set->count; i++) {
		int before = sum->requesting;

		text_clear(&unread);
		part_describe(&part, set->fds[i], sum);
		if (sum->requesting > before)
			requesting = set->fds[i];
	}
	if (sum->requesting == 1 && !wait->numbers_only) {
		part.numbers_only = false;
		part.facts = wait_facts_absent;
		descriptor_describe(&part, requesting);
		sum->one = part.facts;
	}
	wait->pending = part.pending;
}

void wait_set_describe(struct wait *wait, const struct wait_set *set)
{
	struct wait_set_sum sum = {0};

	if (set->count <= TOLD_MAX)
		parts_tell(wait, set, &sum);
	else
		count_tell(wait, set, set->count);
	if (set->count > TOLD_MAX && set->count <= WAIT_SET_FDS && !set->cut)
		parts_look(wait, set, &sum);
	/* poll of one descriptor is like a read of it, even if only the process itself makes it
	 * ready */
	if (set->count == 1 && !set->kept) {
		wait->facts.count = 1;
		wait->fd = set->fds[0];
		wait->connection = sum.connection;
		wait->remote = sum.remote;
		return;
	}
	wait->facts = wait_set_decide(&sum, set->count, set->kept);
	if (sum.others == 1 || wait->facts.has_request) {
		wait->connection = sum.connection;
		wait->remote = sum.remote;
	}
}
