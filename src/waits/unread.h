/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that wait in sockets without a thread: TCP connections to a port on which this host
 * listens whose data nobody has read, and connections that nobody has accepted. No sample shows
 * these, as no thread waits for them here: those of the process are elsewhere.
 *
 * Numbers are of the time of reading. A wait is the time since data last came in (tcp_info): data
 * that is unread has waited for that long, and may have waited longer.
 *
 * Tables of sockets are those of waits/net_namespaces.h: of tsnap's own network namespace, and of
 * those in which threads wait for sockets.
 */
#ifndef TSNAP_WAITS_UNREAD_H
#define TSNAP_WAITS_UNREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/holders.h"

#define UNREAD_PORTS_MAX 16 /* ports, those with most requests that are late */

struct unread_port {
	uint64_t net; /* number of the network namespace */
	uint16_t port;
	uint32_t requests;   /* connections with unread data */
	uint32_t unaccepted; /* connections that are not accepted, with or without data */
	uint32_t limit;	     /* of the accept queue; 0: nothing is in it */
	/* of these, as far as the kernel was asked about each: those that have waited for
	 * UNREAD_LATE_MS, and the longest wait */
	uint32_t late, late_unaccepted;
	int64_t oldest_ms;
	/* inodes of the connection that has waited longest, of those that are accepted, and of the
	 * listener with the longest queue; 0: none */
	uint32_t connection, listener;
	int64_t connection_ms;
	/* process that has it; 0: not known, or several: then one of them has this name */
	int64_t pid;
	int64_t threads; /* of the process; 0: not known */
	char comm[16];	 /* "": not known */
};

#define UNREAD_LATE_MS 100
/* Whoever left data unread for longer does not mean to read it. */
#define UNREAD_ABANDONED_MS 600000

/* A zeroed struct is valid. */
struct unread {
	struct unread_port ports[UNREAD_PORTS_MAX];
	size_t count;
	int64_t next_ns, searched_ns; /* before next_ns nothing is read; the last search */
	struct holders holders;
	bool searches; /* holders is in use */
};

/* Reads the sockets, once a second at most; takes 1.4 ms of a host with few connections, up to
 * 25 ms of one with very many, and up to 0.1 s more where requests wait, to find the process.
 * Ports with nothing late are left out. root: /proc, which must outlive the state. */
void unread_read(struct unread *unread, const char *root, int64_t now_ns);
void unread_done(struct unread *unread);

#endif
