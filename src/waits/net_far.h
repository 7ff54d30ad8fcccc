/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other end of a TCP connection that leads into another network namespace of this host, as
 * between containers: the socket with the same two addresses the other way round.
 *
 * Namespaces are separate hosts to the kernel, and their addresses may repeat. So an end is told
 * only if all namespaces have been looked at and just one of them has such a socket, and none has
 * one with the very addresses of the asked one. Where addresses are translated on the way (NAT) no
 * socket has them, and nobody is told.
 */
#ifndef TSNAP_WAITS_NET_FAR_H
#define TSNAP_WAITS_NET_FAR_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/net_namespaces.h"

/* The namespaces that processes are in, and one process of each. */
struct net_list {
	uint64_t numbers[NET_NAMESPACES_MAX];
	int64_t pids[NET_NAMESPACES_MAX];
	size_t count;
	bool cut; /* there are more */
};

/* Zeroed: nobody has asked yet. */
struct net_far {
	struct net_list now, next; /* the complete list, and the one under way */
	int64_t now_ns;		   /* when the complete one was begun; 0: there is none */
	int64_t begun_ns, spent_ns;
	DIR *walk; /* NULL: none is under way */
};

/* A connection, and what was found. */
struct far_end {
	uint32_t peer;	   /* inode of the other end; 0: not known */
	int64_t listed_ns; /* the list that it was looked for with; 0: it was not */
};

/* own: the connection's record in the namespace of that number, asked for since requested_ns.
 * False: a later scan knows more. */
bool net_far_find(struct net_far *far, struct net_namespaces *namespaces, uint64_t number,
		  const struct diag_record *own, int64_t requested_ns, int64_t now_ns,
		  struct far_end *end);
void net_far_done(struct net_far *far);

#endif
