/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections that the kernel refused in silence because a listener's queue was full, as ss -lm has
 * them (sock_diag(7), 4.0+): SYN packets and last steps of handshakes, which clients send again
 * after a second, two, four ... Those of this network namespace.
 */
#ifndef TSNAP_PROC_LISTENERS_H
#define TSNAP_PROC_LISTENERS_H

#include <stddef.h>
#include <stdint.h>

#define LISTENERS_MAX 64

struct listener {
	uint64_t inode;
	uint16_t port;
	uint32_t queued, backlog; /* connections that wait to be accepted, and the limit */
	uint32_t dropped;	  /* since the socket was made */
};

/* A zeroed struct is valid. */
struct listeners {
	int fd; /* 0: not open yet; -1: the kernel refuses */
	struct listener rows[LISTENERS_MAX];
	size_t count;
};

/* Reads the listeners that ever dropped a connection. */
void listeners_read(struct listeners *listeners);
void listeners_done(struct listeners *listeners);

#endif
