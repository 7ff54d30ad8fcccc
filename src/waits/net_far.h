/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other end of a TCP connection that leads into another network namespace of this host, as
 * between containers: the socket with the same two addresses the other way round.
 *
 * Namespaces are separate hosts to the kernel, and their addresses may repeat. So an end is
 * reported only if all namespaces have been looked at, exactly one of them has such a socket, and
 * none has a socket with the very addresses of the connection itself. Where addresses are
 * translated on the way (NAT), no socket has them, and no end is reported.
 */
#ifndef TSNAP_WAITS_NET_FAR_H
#define TSNAP_WAITS_NET_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/net_namespaces.h"

/* Result of the search for one connection. */
struct far_end {
	uint32_t peer;	   /* inode of the other end; 0: not known */
	int64_t listed_ns; /* when the list of namespaces that was searched was begun; 0: none was
			    */
};

/* Finds the far end of a connection. own: its record in the namespace of that number, requested
 * since requested_ns. False: a later scan knows more. */
bool net_far_find(const char *root, uint64_t number, const struct diag_record *own,
		  int64_t requested_ns, int64_t now_ns, struct far_end *end);
void net_far_done(void);

#endif
