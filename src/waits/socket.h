/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other ends of sockets. A socket is looked up by its inode, which is unique on the host, in the
 * table of the network namespace of the thread that uses it (waits/sock_diag). The protocol comes
 * from the attribute system.sockprotoname of the descriptor (3.6+), so that sockets without tables
 * are named as well.
 */
#ifndef TSNAP_WAITS_SOCKET_H
#define TSNAP_WAITS_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#define SOCKET_LINK "socket:[" /* beginning of a socket's link in /proc/PID/fd */

struct wait;

struct socket_facts {
	const char *connection, *remote; /* texts; NULL: not known */
	const char *brief; /* protocol and address of the other side, or of the listening socket */
	bool listens;
	bool asks;	    /* UDP: a client's port, from which anybody may be asked */
	bool connects;	    /* TCP: the other end has not answered yet */
	bool unaccepted;    /* the other end is the socket that has to accept the connection */
	bool dns;	    /* the other end resolves host names, and this is a client's side */
	bool accepts_there; /* this is the server's side: a socket listens on its local port */
	int64_t local_port, remote_port; /* ABSENT: it has none */
	int64_t peer_pid;		 /* process at the other end, on this host; 0: not known */
	uint32_t peer_count; /* above 1: peer_pid is one of so many processes that have inherited
				the end of a socket pair, or that may accept the connection */
	uint64_t inode;
	uint32_t peer_inode; /* inode of the other end within the host; 0: not known */
};

/* Connections within the host for which the process at the other end is searched. */
enum socket_peer {
	PEER_NONE, /* none; known ends of connections are not refreshed */
	PEER_UNIX,
	PEER_ALL,
};

/* Facts of a descriptor of the waiting thread whose link begins with SOCKET_LINK, valid until the
 * next call. wait->pending: more is known in a later scan. */
const struct socket_facts *socket_find(struct wait *wait, int fd, const char *link,
				       enum socket_peer peer);

/* The netlink socket to ask about a TCP connection that socket_find() has found, for tcp_ask(), and
 * its record; -1: none. The socket is kept in mind for some seconds more. */
struct diag_record;
int socket_query_fd(uint64_t inode, int64_t now_ns, const struct diag_record **record);
/* Age of the request on a TCP connection that socket_find() has found, if an answer is due: see
 * waits/tcp_request.h. 0 for a UDP socket that is connected to a DNS server: resolvers open one for
 * each query, so that its port can't be guessed (RFC 5452). */
int64_t socket_request_age_ms(uint64_t inode, int64_t now_ns);
/* True if a request that came on the connection is not answered. */
bool socket_owes(uint64_t inode, int64_t now_ns);
/* The text of a TCP connection that socket_find() has found, as it is at the other end: there the
 * addresses are the other way round. Transient; NULL: none. */
const char *socket_as_client(uint64_t inode);

#endif
