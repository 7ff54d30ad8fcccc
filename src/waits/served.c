/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection that a thread of a server serves: the one that it was last seen to wait for. While
 * a request on it is not answered the thread works, also where it sleeps on a condition variable,
 * as in a lock of a database.
 */
#include "waits/waits.h"
#include "base/cache.h"
#include "base/text.h"
#include "proc/proc.h"
#include "waits/sockets.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SERVED_MAX 65536 /* threads */

/* Of a thread. */
struct served {
	struct cache_entry entry; /* key: tid */
	int fd;
	uint64_t inode; /* of the socket */
};

void served_init(struct cache *served)
{
	*served = (struct cache){.entry_bytes = sizeof(struct served), .entries_max = SERVED_MAX};
}

void served_note(struct cache *served, const struct wait *wait, int64_t daemon_ports)
{
	const struct wait_facts *facts = &wait->facts;
	struct served *connection;
	bool added;

	if (facts->kind != WAIT_SOCKET || !facts->connected || facts->listens || wait->fd < 0 ||
	    !wait->socket || !wait->socket->inode ||
	    !(facts->accepts_there || (facts->local_port > 0 && facts->local_port < daemon_ports)))
		return;
	connection = cache_get(served, (uint64_t)wait->tid, wait->now_ns, &added);
	connection->fd = wait->fd;
	connection->inode = wait->socket->inode;
}

bool served_has(struct cache *served, int64_t tid)
{
	return cache_find(served, (uint64_t)tid);
}

/* Fills link; false: the descriptor is another one by now, or closed. */
static bool connection_is_there(const struct wait *wait, const struct served *connection,
				char link[40])
{
	char name[32], target[PATH_MAX];

	snprintf(name, sizeof(name), "fd/%d", connection->fd);
	snprintf(link, 40, SOCKET_LINK "%llu]", (unsigned long long)connection->inode);
	return proc_link_read(wait_root(wait), wait->pid, wait->tid, name, target, sizeof(target)) >
		       0 &&
	       !strcmp(target, link);
}

void served_tell(struct cache *served, struct wait *wait)
{
	const struct served *connection = cache_find(served, (uint64_t)wait->tid);
	const struct socket_facts *socket;
	char link[40];

	if (!connection)
		return;
	wait->of_thread = true;
	if (!connection_is_there(wait, connection, link))
		return;
	socket = socket_find(wait_sockets(wait), wait->pid, wait->tid, connection->fd, link,
			     wait->numbers_only ? PEER_NONE : PEER_ALL, wait->now_ns,
			     &wait->pending);
	if (!socket_owes(wait_sockets(wait), connection->inode))
		return;
	wait->facts.serves = true;
	wait->connection = socket->connection;
	wait->remote = socket->remote;
	if (socket->brief)
		text_add_format(wait->text, " for %s", socket->brief);
	if (socket->peer_pid)
		wait_add_thread(wait, " peer ", socket->peer_pid);
}
