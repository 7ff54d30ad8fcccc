/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets: of TCP, UDP and AF_UNIX with the other end that waits/sockets finds, others by their
 * protocol. */
#include "waits/wait_object.h"
#include "base/clock.h"

#include <stdio.h>

static void socket_describe(struct wait *wait)
{
	const struct socket_facts *socket = socket_find(
		&wait->waits->sockets, wait->pid, wait->tid, wait->fd, wait->link,
		wait->numbers_only ? PEER_NONE : PEER_ALL, wait->now_ns, &wait->pending);
	const char *link = socket->unaccepted ? SOCKET_UNACCEPTED : " peer ";

	wait->socket = socket;
	text_add_string(wait->text, socket->brief ? socket->brief : wait->link);
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

/* True for an end of a pair whose other end the process has, too. */
static bool socket_is_own(const struct wait *wait)
{
	char pair[40];

	snprintf(pair, sizeof(pair), SOCKET_LINK "%u]", wait->socket->peer_inode);
	return !wait->facts.connected && wait->socket->peer_inode &&
	       holders_own(wait->waits->root, wait->pid, wait->tid, wait->fd, pair, HOLDER_ANY);
}

static void socket_edge(const struct wait_facts *facts, const struct sample *sample,
			struct edge *edge)
{
	edge_to_end(EDGE_SOCKET, facts->pid, facts->inode, sample, edge);
}

const struct wait_object socket_object = {
	.kind = WAIT_SOCKET,
	.links = (const struct wait_link[]){{SOCKET_LINK, "socket"}, {0}},
	.describe = socket_describe,
	.is_own = socket_is_own,
	.edge = socket_edge,
	.ends = EDGE_SOCKET,
	.searched = true,
	.known = &served,
	.known_ns = 3600 * NS_PER_SECOND, /* long, as a thread may wait for a lock for long */
};
