/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection that a thread of a server serves: the one that it was last seen to wait for. While
 * a request on it is not answered the thread works, even if it sleeps on a condition variable, as
 * in a lock of a database. For an AF_UNIX connection, the threads of the client show whether a
 * request is open, so here the wait class depends on the search for other ends.
 */
#include "waits/waits.h"
#include "keeper/avoid.h"
#include "base/cache.h"
#include "base/text.h"
#include "sample/waits_on.h"
#include "waits/socket.h"
#include "waits/wait_object.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/poll_set.h"

#include <stdio.h>
#include <string.h>

#define SERVED_MAX 65536 /* threads */
#define THREADS_MAX 16	 /* limit of threads of a client that are read */

/* Connection that a thread serves. */
struct served {
	struct cache_entry entry; /* key: tid */
	int fd;
	uint64_t inode; /* inode of the socket */
};

struct cache served = {.entry_bytes = sizeof(struct served), .entries_max = SERVED_MAX};

void served_note(const struct wait *wait)
{
	const struct wait_facts *facts = &wait->facts;
	struct served *connection;
	bool added;

	if (facts->kind != WAIT_SOCKET || facts->listens || wait->fd < 0 || !wait->socket ||
	    !wait->socket->inode || !(facts->connected || wait->socket->peer_inode) ||
	    !(facts->accepts_there ||
	      (facts->local_port > 0 && facts->local_port < wait->waits->classes.daemon_ports)))
		return;
	connection = cache_get(&served, (uint64_t)wait->tid, wait->now_ns, &added);
	connection->fd = wait->fd;
	connection->inode = wait->socket->inode;
}

bool served_has(int64_t tid)
{
	return cache_find(&served, (uint64_t)tid);
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

void served_describe(struct wait *wait)
{
	const struct served *connection = cache_find(&served, (uint64_t)wait->tid);
	const struct socket_facts *socket;
	int64_t client;
	char link[40];

	if (!connection)
		return;
	wait->of_thread = true;
	/* the descriptor may have been closed, or refer to another file by now */
	snprintf(link, sizeof(link), SOCKET_LINK "%llu]", (unsigned long long)connection->inode);
	if (!proc_fd_is(wait->waits->root, wait->pid, wait->tid, connection->fd, link))
		return;
	socket = socket_find(wait, connection->fd, link, wait->numbers_only ? PEER_NONE : PEER_ALL);
	client = socket->peer_pid;
	if (socket->local_port == ABSENT && socket->peer_inode
		    ? !client_waits_here(wait, socket, &client)
		    : !socket_owes(connection->inode))
		return;
	wait->facts.served_inode = (int64_t)connection->inode;
	wait->connection = socket->connection;
	wait->remote = socket->remote;
	if (socket->brief)
		text_add_format(wait->text, " for %s", socket->brief);
	if (client)
		wait_add_thread(wait, WAITS_ON_PEER, client);
}
