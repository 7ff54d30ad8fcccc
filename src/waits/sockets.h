/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other ends of sockets. A socket is looked up by its inode, which is unique on the host, in the
 * table of the network namespace of the thread that uses it (waits/sock_diag). The protocol is told
 * by the attribute system.sockprotoname of the descriptor (3.6+), so that sockets of which there
 * are no tables are named as well.
 */
#ifndef TSNAP_WAITS_SOCKETS_H
#define TSNAP_WAITS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "waits/net_far.h"
#include "waits/net_namespaces.h"

struct holders;

#define SOCKET_LINK "socket:[" /* beginning of a socket's link in /proc/PID/fd */
#define SOCKETS_CACHED 65536

struct sockets {
	const char *root;
	struct holders *holders;
	struct cache *comms;
	struct cache known;
	struct net_namespaces namespaces;
	struct net_far far;
};

struct socket_facts {
	const char *connection, *remote; /* texts; NULL: not known */
	const char *brief;		 /* the other side, or what is listened on */
	bool listens;
	bool accepts_there;		 /* the server's side: its local port is listened on */
	int64_t local_port, remote_port; /* ABSENT: it has none */
	int64_t peer_pid;		 /* process at the other end, on this host; 0: not known */
	uint32_t peer_count;		 /* above 1: one of so many, of an inherited socket pair */
	uint64_t inode;
	uint32_t peer_inode; /* inode of the other end within the host; 0: not known */
};

void sockets_init(struct sockets *sockets, const char *root, struct holders *holders,
		  struct cache *comms);
void sockets_sweep(struct sockets *sockets, int64_t now_ns, int64_t idle_ns);
void sockets_done(struct sockets *sockets);

/* Connections within the host that have the process at the other end looked for. */
enum socket_peer {
	PEER_NONE, /* no connections; ends are told as of when they were seen first */
	PEER_UNIX,
	PEER_ALL,
};

/* A descriptor of a thread whose link begins with SOCKET_LINK. *pending: more is known in a later
 * scan. now_ns as for holders_find(). Valid until the next call. */
const struct socket_facts *socket_find(struct sockets *sockets, int64_t pid, int64_t tid, int fd,
				       const char *link, enum socket_peer peer, int64_t now_ns,
				       bool *pending);

/* True if an answer is due on a TCP connection that socket_find() has told: see
 * lookup/tcp_request.h. */
bool socket_has_request(struct sockets *sockets, uint64_t inode);
/* True if a request that came on it is not answered. */
bool socket_owes(struct sockets *sockets, uint64_t inode);

#endif
