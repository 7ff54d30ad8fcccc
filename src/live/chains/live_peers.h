/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choice of the thread of a process that an edge leads to, where only the process is known, by what
 * its threads do. Each process is looked at once in a scan. Two things are remembered over scans:
 * which threads it has, as long as the kernel counts as many and all of them are there; and what a
 * thread was seen to do, while it sleeps on. For live_edges.c.
 */
#ifndef TSNAP_LIVE_CHAINS_LIVE_PEERS_H
#define TSNAP_LIVE_CHAINS_LIVE_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/index.h"
#include "waits/chain.h"

struct edge_waiter;
struct live_context;
struct live_wakers;

/* Zeroed is empty. */
struct live_peers {
	/* known in this scan */
	struct peer_thread *threads;
	size_t count, capacity;
	struct keyed processes; /* struct peer_process, by pid */
	struct index by_tid;	/* tid to the thread's slot, plus one */
	struct index by_end; /* process and end to a thread's slot, plus one, and above 32 bits to
				how many there are */
	/* remembered over scans */
	struct cache lists; /* struct thread_list, by pid */
	struct cache seen;  /* struct seen_thread, by tid */
	int64_t swept_ns;
};

/* Completes an edge to edge->pid, which is as sure as edge->sure if that process has one thread. */
void edge_to_process(struct live_context *context, struct live_peers *peers,
		     struct live_wakers *wakers, const struct edge_waiter *waiter,
		     struct edge *edge);

void live_peers_begin(struct live_peers *peers, int64_t now_ns); /* a new scan */
void live_peers_done(struct live_peers *peers);

#endif
