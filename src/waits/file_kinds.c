/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of files that a descriptor refers to, by its link in /proc/PID/fd. */
#include "waits/waits.h"
#include "waits/holders.h"
#include "proc/proc.h"
#include "waits/sockets.h"
#include "proc/file_type.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The number after a line's key in /proc/PID/fdinfo/FD, proc(5); ABSENT. */
static int64_t fdinfo_number(const struct wait *wait, const char *key, int base)
{
	const char *at = strstr(wait_fdinfo(wait, NULL), key);

	return at ? strtoll(at + strlen(key), NULL, base) : ABSENT;
}

static void socket_describe(struct wait *wait)
{
	const struct socket_facts *socket = socket_find(
		wait_sockets(wait), wait->pid, wait->tid, wait->fd, wait->link,
		wait->numbers_only ? PEER_NONE : PEER_ALL, wait->now_ns, &wait->pending);
	const char *link = socket->unaccepted ? SOCKET_UNACCEPTED : " peer ";

	wait->socket = socket;
	text_add_string(wait->text, socket->brief ? socket->brief : wait->link);
	wait->facts.kind = WAIT_SOCKET;
	wait->facts.listens = socket->listens;
	wait->facts.connected = socket->remote != NULL;
	wait->facts.accepts_there = socket->accepts_there;
	wait->facts.local_port = socket->local_port;
	wait->facts.remote_port = socket->remote_port;
	if (socket->peer_count > 1) {
		text_add_format(wait->text, "%s%s of %u", link, socket->unaccepted ? "any" : "one",
				socket->peer_count);
	} else if (socket->peer_pid) {
		wait->facts.pid = socket->peer_pid;
		wait->facts.inode = socket->peer_inode;
		wait_add_thread(wait, link, socket->peer_pid);
	}
}

/* True if the descriptor itself is open for reading. */
static bool descriptor_reads(const struct wait *wait)
{
	int64_t flags = fdinfo_number(wait, "flags:", 8);

	return flags == ABSENT || (flags & O_ACCMODE) == O_RDONLY;
}

static bool own_end(const struct wait *wait, const char *link, enum holder_mode mode)
{
	return holders_own(wait_root(wait), wait->pid, wait->tid, wait->fd, link, mode);
}

static void pipe_describe(struct wait *wait)
{
	enum holder_mode mode;
	uint32_t count = 1;
	bool reads;
	int64_t pid;

	wait->facts.kind = WAIT_PIPE;
	if (wait->numbers_only)
		return;
	reads = descriptor_reads(wait);
	mode = reads ? HOLDER_WRITES : HOLDER_READS;
	/* children may have inherited it */
	if (own_end(wait, wait->link, mode))
		pid = wait->pid;
	else
		pid = holders_find(wait_holders(wait), wait->link, mode, wait->pid, wait->now_ns,
				   &count, &wait->pending);
	text_add_string(wait->text, *wait->link == '/' ? wait->link : "pipe");
	if (!pid)
		return;
	if (count > 1) {
		text_add_format(wait->text, " %s one of %u", reads ? "from" : "to", count);
		return;
	}
	wait->facts.pid = pid;
	if (!strncmp(wait->link, "pipe:[", 6))
		wait->facts.inode = strtoll(wait->link + 6, NULL, 10);
	wait_add_thread(wait, reads ? " from " : " to ", pid);
}

static void eventfd_describe(struct wait *wait)
{
	int64_t count = fdinfo_number(wait, "eventfd-count:", 16);

	wait->facts.kind = WAIT_EVENT;
	text_add_string(wait->text, "eventfd");
	if (count != ABSENT)
		text_add_format(wait->text, " count %lld", (long long)count);
}

static void timerfd_describe(struct wait *wait)
{
	int64_t left_s = fdinfo_number(wait, "it_value: (", 10);

	wait->facts.kind = WAIT_TIMER;
	text_add_string(wait->text, "timerfd");
	if (left_s != ABSENT)
		text_add_format(wait->text, " %llds left", (long long)left_s);
}

/* The Pid line of fdinfo has the id in the reader's pid namespace; -1: the process has been waited
 * for. */
static void pidfd_describe(struct wait *wait)
{
	int64_t pid = fdinfo_number(wait, "Pid:", 10);

	wait->facts.kind = WAIT_PROCESS;
	if (pid <= 0) {
		text_add_string(wait->text, "pidfd");
		return;
	}
	wait->facts.pid = pid;
	wait_add_thread(wait, "pid ", pid);
}

static void event_describe(struct wait *wait)
{
	wait->facts.kind = WAIT_EVENT;
	text_add_string(wait->text, file_word(wait->link));
}

/* Kinds of files by the beginning of the link, with one word for each. */
static const struct file_kind {
	const char *prefix, *word;
	wait_describer *describe; /* NULL: the link itself says most */
} kinds[] = {
	{SOCKET_LINK, "socket", socket_describe},
	{"pipe:[", "pipe", pipe_describe},
	{"anon_inode:[eventpoll]", "epoll", epoll_describe},
	{"anon_inode:[eventfd]", "eventfd", eventfd_describe},
	{"anon_inode:[timerfd]", "timerfd", timerfd_describe},
	{"anon_inode:[signalfd]", "signalfd", signal_describe},
	{"anon_inode:inotify", "inotify", event_describe},
	{"anon_inode:[fanotify]", "fanotify", event_describe},
	{"anon_inode:[pidfd]", "pidfd", pidfd_describe},
	{"pidfd:[", "pidfd", pidfd_describe}, /* link since 6.9 */
	{"anon_inode:[io_uring]", "io_uring", uring_describe},
	{"anon_inode:[userfaultfd]", "userfaultfd", event_describe},
	{"anon_inode:[perf_event]", "perf_event", event_describe},
	{"anon_inode:bpf", "bpf", event_describe},
	{"anon_inode:", "anon", NULL},
	{"/memfd:", "memfd", NULL},
};

static const struct file_kind *kind_find(const char *link)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(link, kinds[i].prefix, strlen(kinds[i].prefix)))
			return &kinds[i];
	return NULL;
}

const char *file_word(const char *link)
{
	const struct file_kind *kind = kind_find(link);

	if (kind)
		return kind->word;
	return *link == '/' ? NULL : "other"; /* mnt:[4026531841] */
}

static bool path_is_stored(const char *path)
{
	static const char *const others[] = {"/dev/", "/proc/", "/sys/", "/memfd:"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strncmp(path, others[i], strlen(others[i])))
			return false;
	return *path == '/';
}

/* True if the thread is in open(2) of a FIFO and waits for another process to open its other end.
 * The kernel function in wchan shows it: a look at the path could wait for a file system's
 * server. */
static bool opens_fifo(const struct wait *wait)
{
	char wchan[128];

	return wait->fd < 0 && *wait->link == '/' &&
	       proc_file_read(wait_root(wait), wait->pid, wait->tid, "wchan", wchan,
			      sizeof(wchan)) > 0 &&
	       (!strcmp(wchan, "wait_for_partner") || !strcmp(wchan, "fifo_open"));
}

void file_describe(struct wait *wait)
{
	const struct file_kind *kind = wait->link ? kind_find(wait->link) : NULL;
	const char *word;

	if (!wait->link)
		return;
	if (kind && kind->describe) {
		kind->describe(wait);
		return;
	}
	word = *wait->link == '/' && wait->fd >= 0
		       ? file_type_word(wait_root(wait), wait->pid, wait->tid, wait->fd)
		       : NULL;
	if (word && !strcmp(word, "fifo")) {
		pipe_describe(wait);
		return;
	}
	if (opens_fifo(wait)) {
		wait->facts.kind = WAIT_PIPE;
	} else {
		wait->facts.kind = WAIT_FILE;
		wait->facts.stored = path_is_stored(wait->link);
	}
	text_add_string(wait->text, wait->link);
}

static bool descriptor_is_own(const struct wait *wait)
{
	static const char *const own[] = {"eventfd", "timerfd", "signalfd"};
	const char *word = file_word(wait->link);
	char pair[40];

	for (size_t i = 0; word && i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(word, own[i]))
			return true;
	if (wait->facts.kind == WAIT_PIPE)
		return own_end(wait, wait->link,
			       descriptor_reads(wait) ? HOLDER_WRITES : HOLDER_READS);
	if (wait->facts.kind != WAIT_SOCKET || wait->facts.connected || !wait->socket->peer_inode)
		return false;
	snprintf(pair, sizeof(pair), SOCKET_LINK "%u]", wait->socket->peer_inode);
	return own_end(wait, pair, HOLDER_ANY);
}

bool descriptor_describe(struct wait *wait, int fd)
{
	char name[32], target[PATH_MAX];
	struct wait part = *wait;

	snprintf(name, sizeof(name), "fd/%d", fd);
	part.fd = fd;
	part.link = target;
	if (proc_link_read(wait_root(wait), wait->pid, wait->tid, name, target, sizeof(target)) <=
	    0)
		part.link = NULL;
	/* nested sets are not read: they may contain each other */
	if (part.link && !strncmp(part.link, "anon_inode:[eventpoll]", 22))
		text_add_string(wait->text, "epoll");
	else if (part.link)
		file_describe(&part);
	else
		text_add_format(wait->text, "fd %d", fd);
	wait->facts = part.facts;
	wait->socket = part.socket;
	wait->pending |= part.pending;
	return part.link && descriptor_is_own(&part);
}
