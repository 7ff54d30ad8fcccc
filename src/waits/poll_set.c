/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/poll_set.h"
#include "base/clock.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/tcp_request.h"
#include "waits/socket.h"
#include "waits/wait_object.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define WAIT_SET_FDS 64 /* larger sets are taken for those of a server */

/* Descriptors that the system call was given. Zeroed is empty. */
struct wait_set {
	int64_t count;	       /* number of descriptors, with those that do not fit into fds */
	bool cut;	       /* more descriptors than could be read */
	bool timed;	       /* the wait has a time limit */
	bool kept;	       /* epoll(7): the set also has connections on which nothing is due */
	int fds[WAIT_SET_FDS]; /* the first descriptors */
	uint64_t writes; /* bits of those that the thread waits to write to: they have no room */
};
_Static_assert(WAIT_SET_FDS <= 64, "each has a bit");

#define TOLD_MAX 4 /* limit of descriptors that are described one by one */

/* Sockets of buses and displays: connections to them are open forever, and the other side speaks
 * first. */
static const char *const buses[] = {
	"/run/dbus/",	   "/var/run/dbus/",   "/run/user/",
	"/tmp/.X11-unix/", "@/tmp/.X11-unix/", "@/tmp/dbus-",
};

static void wait_set_add(struct wait_set *set, int fd, bool writes)
{
	size_t at = (size_t)set->count++;

	if (at >= WAIT_SET_FDS)
		return;
	set->fds[at] = fd;
	set->writes |= (uint64_t)writes << at;
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

/* True if the request counts more than the one in the sum: of those that ask one server the oldest,
 * which is in work if any is; else that with the highest local port, which is a client's. */
static bool counts_more(const struct wait_set_sum *sum, const struct wait_facts *facts)
{
	if (!sum->several && facts->request_ns > 0 && sum->one.request_ns > 0)
		return facts->request_ns < sum->one.request_ns;
	return facts->local_port > sum->one.local_port;
}

void wait_set_sum_add(struct wait_set_sum *sum, const struct wait_facts *facts, bool own,
		      bool has_request, const char *connection, const char *remote)
{
	bool counts;

	if (own) {
		sum->wakes |= facts->kind == WAIT_EVENT || facts->kind == WAIT_TIMER;
		return;
	}
	sum->others++;
	sum->listens += facts->kind == WAIT_SOCKET && facts->listens;
	sum->serves += facts->kind == WAIT_SOCKET && (facts->listens || facts->accepts_there);
	sum->connects |= is_of_client(facts);
	if (has_request && sum->requesting)
		sum->several |= !remote || !sum->remote || strcmp(remote, sum->remote) != 0;
	counts = sum->others == 1 || (has_request && (!sum->requesting || counts_more(sum, facts)));
	sum->requesting += has_request;
	if (!counts)
		return;
	sum->one = *facts;
	sum->connection = connection;
	sum->remote = remote;
}

/* True if there is only one descriptor that counts, and it decides as if the thread read from
 * it. */
static bool one_decides(const struct wait_set_sum *sum, bool kept)
{
	if (sum->others != 1 || sum->one.kind == WAIT_UNKNOWN)
		return false;
	return sum->one.writes || !is_of_client(&sum->one) || sum->requesting ||
	       !(kept || is_bus(sum->remote));
}

struct wait_facts wait_set_decide(const struct wait_set_sum *sum, int64_t count, bool kept)
{
	struct wait_facts facts = wait_facts_absent;

	if (one_decides(sum, kept)) {
		facts = sum->one;
	} else {
		facts.kind = WAIT_SET;
		facts.listens = sum->listens && sum->listens == sum->others;
		facts.accepts_there = sum->serves && sum->serves == sum->others && !sum->wakes;
		if (sum->requesting && !sum->listens) {
			facts.has_request = true;
			facts.dns = sum->one.dns;
			facts.request_ns = sum->one.request_ns;
			facts.pid = sum->one.pid;
			facts.local_port = sum->one.local_port;
			facts.remote_port = sum->one.remote_port;
		}
		if (sum->requesting && !sum->several) {
			facts.own = sum->one.own;
			facts.requested_pid = sum->one.pid;
			facts.requested_inode = sum->one.inode;
		}
	}
	facts.count = count;
	facts.open = sum->open;
	facts.changes = kept && (sum->connects || facts.writes);
	return facts;
}

/* Adds one descriptor to wait->text, and its facts to the sum. True if it is an end of a pipe or a
 * socket pair, and the process has the other end, too. */
static bool part_describe(struct wait *wait, const struct wait_set *set, int at,
			  struct wait_set_sum *sum)
{
	const struct socket_facts *socket;
	bool pending = wait->pending, own;
	int64_t age_ms = REQUEST_NONE;

	wait->pending = false;
	wait->facts = wait_facts_absent;
	own = descriptor_describe(wait, set->fds[at]);
	socket = wait->facts.kind == WAIT_SOCKET ? wait->socket : NULL;
	sum->open |= wait->pending && socket && !socket->remote && !socket->listens &&
		     !socket->peer_inode;
	if (socket && is_of_client(&wait->facts))
		age_ms = socket_request_age_ms(socket->inode, wait->now_ns);
	/* a connection that begins has room as soon as it is there */
	wait->facts.writes = set->writes >> at & 1 && !own && !(socket && socket->connects);
	/* whoever waits for a time only, and alone for that socket, has asked somebody */
	wait->facts.connected |= socket && socket->asks && set->timed && set->count == 1;
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
		if (part_describe(wait, set, i, sum))
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
 * end is searched only if answers are due from one address. */
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
		part_describe(&part, set, i, sum);
		if (sum->requesting > before && sum->one.local_port == part.facts.local_port)
			requesting = set->fds[i];
	}
	if (sum->requesting && !sum->several && !wait->numbers_only) {
		part.numbers_only = false;
		part.facts = wait_facts_absent;
		descriptor_describe(&part, requesting);
		sum->one = part.facts;
	}
	wait->pending = part.pending;
}

/* Writes the set's text, "2 fds: eventfd count 0, tcp 10.0.0.9:5432", and its facts. The text has
 * the descriptors in alphabetical order, without pipes and socket pairs of which the process has
 * both ends. */
static void wait_set_describe(struct wait *wait, const struct wait_set *set)
{
	const struct wait_object *object = wait->facts.object;
	struct wait_set_sum sum = {0};
	bool idle;

	if (set->count <= TOLD_MAX)
		parts_tell(wait, set, &sum);
	else
		count_tell(wait, set, set->count);
	if (set->count > TOLD_MAX && set->count <= WAIT_SET_FDS && !set->cut)
		parts_look(wait, set, &sum);
	/* poll of one descriptor is like a read of it, or a write, even if only the process itself
	 * makes it ready */
	if (set->count == 1 && !set->kept) {
		wait->facts.count = 1;
		wait->facts.polls = true;
		wait->fd = set->fds[0];
		wait->connection = sum.connection;
		wait->remote = sum.remote;
		return;
	}
	idle = !sum.connects && !sum.serves && !sum.requesting;
	if (idle && wait_describe_of_idle_set(wait))
		return;
	wait->facts = wait_set_decide(&sum, set->count, set->kept);
	if (wait->facts.kind == WAIT_SET)
		wait->facts.object = object;
	wait->facts.polls = true;
	wait->facts.kept = set->kept;
	if (sum.others == 1 || wait->facts.has_request) {
		wait->connection = sum.connection;
		wait->remote = sum.remote;
	}
	if (!idle || set->count > WAIT_SET_FDS || set->cut)
		return;
	served_describe(wait);
	if (wait->facts.served_inode != ABSENT || wait->facts.serves_client) {
		wait->facts.kind = WAIT_SET;
		wait->facts.changes = true;
	}
}

/* --- the calls */

#define SELECT_FDS 1024 /* FD_SETSIZE; larger sets, which a program has to make itself, are cut */
#define POLL_FDS 1024	/* limit of entries that are read, with the unused (negative) ones */

/* Limits for epoll sets that take long to list. The kernel lists a set as a whole, however little
 * of it is read: 30 ms for 60 000 descriptors. A set that takes LONG_SET_NS or more is listed for
 * 1/LONG_SET_SHARE of the time. */
#define LONG_SET_NS NS_PER_MS
#define LONG_SET_SHARE 100
#define LONG_SETS_MAX 4096

/* Describes poll(2), which ignores negative descriptors. */
static void poll_describe(struct wait *wait)
{
	static struct pollfd polled[POLL_FDS];
	uint32_t given = (uint32_t)wait->arg[1], count = given < POLL_FDS ? given : POLL_FDS;
	struct wait_set list = {0};

	if (!given) {
		wait_describe(wait, &timer_object, timer_object.describe);
		return;
	}
	wait->facts.polls = true;
	if (!wait_memory_read(wait, wait_address(wait, 0), polled, count * sizeof(*polled)))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (polled[i].fd >= 0)
			wait_set_add(&list, polled[i].fd, polled[i].events & POLLOUT);
	list.cut = count < given;
	list.timed = strcmp(wait->call, "poll") ? wait->arg[2] != 0 : (int)wait->arg[2] > 0;
	wait_set_describe(wait, &list);
}

int poll_one_fd(const char *root, int64_t pid, int64_t tid, const struct proc_syscall *call)
{
	const struct wait_object *object;
	const char *name = syscall_name(call->nr, false);
	const struct wait_call *row = name ? wait_call_find(name, &object) : NULL;
	struct pollfd polled;

	return row && row->describe == poll_describe && call->arg[1] == 1 &&
			       user_memory_read(root, pid, tid, call->arg[0], &polled,
						sizeof(polled)) == sizeof(polled)
		       ? polled.fd
		       : -1;
}

/* Describes select(2): up to three sets with a bit for each descriptor, in words of the host's byte
 * order; on the little-endian hosts that tsnap runs on, 32-bit words look the same. */
static void select_describe(struct wait *wait)
{
	int given = (int)wait->arg[0], fds = given < SELECT_FDS ? given : SELECT_FDS;
	uint8_t any[SELECT_FDS / 8] = {0}, writes[SELECT_FDS / 8] = {0}, set[SELECT_FDS / 8];
	size_t bytes = given > 0 ? (size_t)(fds + 63) / 64 * 8 : 0;
	struct wait_set list = {0};

	wait->facts.polls = true;
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
		if (arg == 2)
			memcpy(writes, set, bytes);
	}
	for (int fd = 0; fd < fds; fd++)
		if (any[fd / 8] >> fd % 8 & 1)
			wait_set_add(&list, fd, writes[fd / 8] >> fd % 8 & 1);
	list.cut = fds < given;
	list.timed = wait->arg[4];
	wait->facts.polls = list.count;
	if (list.count)
		wait_set_describe(wait, &list);
	else
		wait_describe(wait, &timer_object, timer_object.describe);
}

/* An epoll set that the kernel took long to list. */
struct long_set {
	struct cache_entry entry; /* key: process and descriptor */
	int64_t again_ns, count;
	bool cut;
};

static struct cache long_sets = {.entry_bytes = sizeof(struct long_set),
				 .entries_max = LONG_SETS_MAX};

/* Lists the epoll set from fdinfo, which has a line "tfd: 5 events: ..." for each descriptor,
 * proc(5), since 3.8. False: fdinfo can't be read. */
static bool epoll_list(struct wait *wait, struct wait_set *list)
{
	const char *text = wait_fdinfo(wait, &list->cut);

	for (const char *line = text; (line = strstr(line, "tfd:")); line += strlen("tfd:")) {
		unsigned int events = 0;
		int fd = 0;

		sscanf(line, "tfd: %d events: %x", &fd, &events);
		/* an edge that has not come shows nothing of the room that there is */
		wait_set_add(list, fd, (events & (EPOLLOUT | EPOLLET)) == EPOLLOUT);
	}
	return *text;
}

/* Lists the epoll set. Of a set that takes long only the number of descriptors is used: a recent
 * count will do. */
static bool epoll_list_or_known(struct wait *wait, struct wait_set *list)
{
	uint64_t key = (uint64_t)wait->pid << 32 | (uint32_t)wait->fd;
	struct long_set *known = cache_find(&long_sets, key);
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
	known = cache_get(&long_sets, key, wait->now_ns, &added);
	known->count = list->count;
	known->cut = list->cut;
	known->again_ns = wait->now_ns + LONG_SET_SHARE * took_ns;
	return true;
}

static void epoll_describe(struct wait *wait)
{
	struct wait_set list = {.kept = true};

	wait->facts.polls = wait->facts.kept = true;
	if (epoll_list_or_known(wait, &list))
		wait_set_describe(wait, &list);
}

/* The process at the other end of a connection on which an answer is due, if no other one asks
 * another server. */
static void set_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge)
{
	const struct wait_facts end = {
		.pid = facts->requested_pid, .tid = ABSENT, .inode = facts->requested_inode};

	if (facts->requested_pid != ABSENT)
		edge_to_end(EDGE_SOCKET, &end, sample, edge);
}

const struct wait_object poll_object = {
	.kind = WAIT_SET,
	.serves = SERVES_SET,
	.calls =
		(const struct wait_call[]){
			{"poll", poll_describe, 0},
			{"ppoll", poll_describe, 0},
			{"ppoll_time64", poll_describe, 0},
			{"_newselect", select_describe, 0},
			{"select", select_describe, 0},
			{"pselect6", select_describe, 0},
			{"pselect6_time64", select_describe, 0},
			{0},
		},
	.edge = set_edge,
	.searched = true,
};

const struct wait_object epoll_object = {
	.kind = WAIT_SET,
	.serves = SERVES_SET,
	.links = (const struct wait_link[]){{"anon_inode:[eventpoll]", "epoll"}, {0}},
	.describe = epoll_describe,
	.nests = true,
	.edge = set_edge,
	.searched = true,
	.known = &long_sets,
	.known_ns = 60 * NS_PER_SECOND,
};
