/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edges from the threads of the live host to those that they wait for, one at a time. For
 * live_chains.c.
 */
#ifndef TSNAP_LIVE_CHAINS_LIVE_EDGES_H
#define TSNAP_LIVE_CHAINS_LIVE_EDGES_H

#include "live/chains/edge_waiter.h"
#include "live/chains/live_kernel_locks.h"
#include "live/chains/live_peers.h"
#include "live/chains/live_wakers.h"
#include "live/context/live_context.h"
#include "waits/chain.h"

struct live_host;

/* Locks that threads wait for in one scan: each is read once for all of its waiters. */
struct held_list {
	struct held *locks;
	size_t count, capacity;
	struct index slots; /* hash of process, address and call, to slot plus one */
};

/* Knowledge of a scan about edges. Zeroed is empty. */
struct live_edges {
	struct live_host *host; /* knows CPU quotas */
	int64_t scan_time_ns;
	struct live_kernel_locks kernel_locks;
	struct held_list held, held_before; /* of this scan, and of the last one */
	/* knowledge of earlier scans, too */
	struct live_peers peers;
	struct live_wakers wakers;
};

/* Lock that an edge was found by. Zeroed: nothing that changes while its thread sleeps. */
struct edge_basis {
	size_t held;		   /* slot in the list of held locks, plus one; 0: none */
	struct kernel_lock kernel; /* blocker 0: none */
	struct lock_name name;	   /* of that lock; field NULL: not known */
};

/* Finds the edge of a thread, and the lock that it was found by. False: not known yet. */
bool live_edge_find(struct live_context *context, struct live_edges *edges,
		    const struct edge_waiter *waiter, struct edge *edge, struct edge_basis *basis);
bool edge_basis_moves(const struct edge_basis *basis); /* true: the lock must be read again */
/* Reads the lock of an edge again, one in user space once a scan. True: the holder is the same as
 * before. slept: the thread has slept all the time, as its record shows. */
bool live_edge_holds(struct live_context *context, struct live_edges *edges, int64_t tid,
		     const struct edge_basis *basis, bool slept);
/* Makes a certain edge likely if its holder may have got the lock only after the scan. To be called
 * after live_edge_holds(). */
void live_edge_doubt(struct live_context *context, const struct edge_basis *basis,
		     struct edge *edge);

void live_edges_begin(struct live_edges *edges, int64_t scan_time_ns); /* begins a new scan */
void live_edges_done(struct live_edges *edges);

#endif
