/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choice of the thread of a process that an edge leads to, where only the process is known. For
 * live_edges.c.
 */
#ifndef TSNAP_LIVE_LIVE_PEERS_H
#define TSNAP_LIVE_LIVE_PEERS_H

#include <stdint.h>

#include "waits/chain.h"

struct edge_waiter;
struct live_context;
struct live_edges;

/* Other end of what a thread waits on. */
struct peer_end {
	const struct edge_waiter *waiter; /* the thread */
	int64_t inode;			  /* inode of the other end; ABSENT: not known */
	uint64_t link;			  /* number by peer_link_of(); 0: not known */
};

/* Completes an edge to a process. end: other end of what leads there, NULL if that is no
 * descriptor. sure: how sure the edge is if the process has one thread. */
void edge_to_process(struct live_context *context, struct live_edges *edges, int64_t pid,
		     const struct peer_end *end, enum edge_sure sure, struct edge *edge);

#endif
