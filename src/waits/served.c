/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection that a thread of a server serves: the one that it was last seen to wait for. A
 * thread that has been asleep since before tsnap came was not seen so; if it is the only one of its
 * process, it serves whatever connection of the process an answer is due on, and the memory of some
 * programs shows whether a thread serves a client (src/apps). While a request is not
 * answered the thread works, even if it sleeps on a condition variable, as in a lock of a database,
 * or polls something else. For an AF_UNIX connection, the threads of the client show whether a
 * request is open, so here the wait class depends on the search for other ends.
 */
#include "waits/waits.h"
#include "keeper/avoid.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/text.h"
#include "sample/waits_on.h"
#include "waits/socket.h"
#include "waits/wait_object.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/poll_set.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SERVED_MAX 65536 /* threads */
#define THREADS_MAX 16	 /* limit of threads of a client that are read */
#define DESCRIPTORS_MAX 64
#define SEARCH_AGAIN_NS (5 * NS_PER_SECOND)
#define SAME_WAIT_AGAIN_NS (60 * NS_PER_SECOND)

/* Connection that a thread serves. */
struct served {
	struct cache_entry entry; /* key: tid */
	int fd;			  /* -1: none is known */
	uint64_t inode;		  /* inode of the socket */
	/* when its process's descriptors were searched, 0: never; and in which wait */
	int64_t searched_ns;
	uint64_t searched_episode;
};

struct cache served = {.entry_bytes = sizeof(struct served), .entries_max = SERVED_MAX};

/* True for a connection of which the thread's process is the server. */
static bool is_of_server(const struct wait *wait, const struct socket_facts *socket)
{
	return !socket->listens && socket->inode && (socket->remote || socket->peer_inode) &&
	       (socket->accepts_there ||
		(socket->local_port > 0 && socket->local_port < wait->waits->classes.daemon_ports));
}

void served_note(const struct wait *wait)
{
	struct served *connection;
	bool added;

	if (wait->facts.kind != WAIT_SOCKET || wait->fd < 0 || !wait->socket ||
	    !is_of_server(wait, wait->socket))
		return;
	connection = cache_get(&served, (uint64_t)wait->tid, wait->now_ns, &added);
	connection->fd = wait->fd;
	connection->inode = wait->socket->inode;
}

bool served_has(int64_t tid)
{
	const struct served *connection = cache_find(&served, (uint64_t)tid);

	return connection && connection->fd >= 0;
}

/* The descriptor that a thread waits for, in a system call on it or in poll(2) of it alone; -1:
 * none. */
static int descriptor_of_wait(const char *root, int64_t pid, int64_t tid)
{
	struct proc_syscall call;
	int64_t arg[6];
	int fd;

	if (proc_syscall_read(root, pid, tid, &call) || call.running || call.nr < 0)
		return -1;
	fd = poll_one_fd(root, pid, tid, &call);
	if (fd >= 0)
		return fd;
	memcpy(arg, call.arg, sizeof(arg));
	return syscall_fd(call.nr, false, arg);
}

/* True if a thread of the process waits for the file that the link names. */
static bool process_waits_on(const char *root, int64_t pid, const char *link)
{
	DIR *tasks = avoids_process(pid) ? NULL : proc_dir_open(root, pid, "task");
	int left = THREADS_MAX;
	bool found = false;
	int64_t tid;

	while (!found && left-- && (tid = proc_dir_next(tasks)) >= 0) {
		int fd = descriptor_of_wait(root, pid, tid);

		found = fd >= 0 && proc_fd_is(root, pid, tid, fd, link);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* True if the client of an AF_UNIX connection waits for it: the kernel keeps no times of such
 * connections, but the client is on this host. */
static bool client_waits_here(struct wait *wait, const struct socket_facts *socket, int64_t *client)
{
	char link[40];

	/* the client may send a request later */
	wait->facts.changes = true;
	snprintf(link, sizeof(link), SOCKET_LINK "%u]", socket->peer_inode);
	*client = holders_find(&wait->waits->holders, link, HOLDER_ANY, wait->pid, wait->now_ns,
			       NULL, &wait->pending);
	return *client && process_waits_on(wait->waits->root, *client, link);
}

/* True if the client of that connection waits for an answer. */
static bool client_waits(struct wait *wait, const struct socket_facts *socket, int64_t *client)
{
	*client = socket->peer_pid;
	return socket->local_port == ABSENT && socket->peer_inode
		       ? client_waits_here(wait, socket, client)
		       : socket_owes(socket->inode, wait->now_ns);
}

static bool is_only_thread(const struct wait *wait)
{
	return wait->tid == wait->pid && !avoids_process(wait->pid) &&
	       proc_thread_count(wait->waits->root, wait->pid) == 1;
}

/* Finds a connection on which the process owes an answer, and its descriptor; -1: there is none, or
 * a later scan knows more. */
static int connection_search(struct wait *wait, uint64_t *inode)
{
	DIR *descriptors = proc_dir_open(wait->waits->root, wait->pid, "fd");
	int left = DESCRIPTORS_MAX;
	int64_t fd, found = -1, client;

	while (found < 0 && left-- && (fd = proc_dir_next(descriptors)) >= 0) {
		const struct socket_facts *socket;
		char name[32], link[PATH_MAX];

		snprintf(name, sizeof(name), "fd/%lld", (long long)fd);
		if (proc_link_read(wait->waits->root, wait->pid, wait->tid, name, link,
				   sizeof(link)) <= 0 ||
		    strncmp(link, SOCKET_LINK, strlen(SOCKET_LINK)) != 0)
			continue;
		socket = socket_find(wait, (int)fd, link, PEER_NONE);
		*inode = socket->inode;
		if (is_of_server(wait, socket) && client_waits(wait, socket, &client))
			found = fd;
	}
	if (descriptors)
		closedir(descriptors);
	return (int)found;
}

/* Notes the connection that the thread serves if that is certain though it was not seen to wait for
 * it. NULL: it is not. */
static const struct served *served_search(struct wait *wait)
{
	struct served *connection = cache_find(&served, (uint64_t)wait->tid);
	int64_t again_ns = connection && connection->searched_episode == wait->episode
				   ? SAME_WAIT_AGAIN_NS
				   : SEARCH_AGAIN_NS;
	bool added, pending = wait->pending;

	if (connection && connection->searched_ns &&
	    wait->now_ns - connection->searched_ns < again_ns)
		return NULL;
	if (wait->tid != wait->pid)
		return NULL;
	connection = cache_get(&served, (uint64_t)wait->tid, wait->now_ns, &added);
	connection->searched_episode = wait->episode;
	wait->pending = false;
	connection->fd = is_only_thread(wait) ? connection_search(wait, &connection->inode) : -1;
	connection->searched_ns = wait->pending ? 0 : wait->now_ns;
	wait->facts.changes |= wait->pending;
	wait->pending |= pending;
	return connection->fd >= 0 ? connection : NULL;
}

/* True if the descriptor still refers to the connection. */
static bool is_open(const struct wait *wait, const struct served *connection)
{
	char link[40];

	snprintf(link, sizeof(link), SOCKET_LINK "%llu]", (unsigned long long)connection->inode);
	return connection->fd >= 0 &&
	       proc_fd_is(wait->waits->root, wait->pid, wait->tid, connection->fd, link);
}

/* The thread's connection, as noted or searched for; NULL: none is known. */
static const struct served *served_find(struct wait *wait, bool searches)
{
	const struct served *connection = cache_find(&served, (uint64_t)wait->tid);

	if (connection && is_open(wait, connection))
		return connection;
	return searches ? served_search(wait) : NULL;
}

const char *served_connection(struct wait *wait, bool searches)
{
	const struct served *connection = served_find(wait, searches);
	char link[40];

	if (!connection)
		return NULL;
	snprintf(link, sizeof(link), SOCKET_LINK "%llu]", (unsigned long long)connection->inode);
	socket_find(wait, connection->fd, link, PEER_NONE);
	return socket_owes(connection->inode, wait->now_ns) ? socket_as_client(connection->inode)
							    : NULL;
}

/* Describes a thread of a program whose memory shows whether it serves a client. */
static void program_describe(struct wait *wait)
{
	bool serves;

	if (!wait->waits->app_serves || !wait->waits->app_serves(wait->waits->app_finder, wait->pid,
								 wait->tid, wait->now_ns, &serves))
		return;
	wait->of_thread = true;
	wait->facts.program_tells = true;
	wait->facts.serves_client = serves;
	if (serves)
		text_add_string(wait->text, WAITS_ON_FOR_CLIENT);
}

void served_describe(struct wait *wait)
{
	const struct served *connection;
	const struct socket_facts *socket;
	int64_t client;
	char link[40];

	wait->of_thread |= served_has(wait->tid);
	connection = served_find(wait, true);
	if (!connection) {
		program_describe(wait);
		return;
	}
	snprintf(link, sizeof(link), SOCKET_LINK "%llu]", (unsigned long long)connection->inode);
	socket = socket_find(wait, connection->fd, link, wait->numbers_only ? PEER_NONE : PEER_ALL);
	if (!client_waits(wait, socket, &client))
		return;
	wait->facts.served_inode = (int64_t)connection->inode;
	wait->connection = socket->connection;
	wait->remote = socket->remote;
	if (socket->brief)
		text_add_format(wait->text, " for %s", socket->brief);
	if (client)
		wait_add_thread(wait, WAITS_ON_PEER, client);
}
