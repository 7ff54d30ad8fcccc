/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edges to the thread that ended a sleeper's last waits, for waits of which nothing better is
 * known: condition variables, queues of thread pools, semaphores, eventfds. For live_edges.c.
 *
 * Only waits that threads alone end are taken: a wait with a timeout may be ended by an interrupt,
 * and its waker is then the thread that was interrupted. What a thread waited for between two scans
 * is not known, so it is a guess (likely) that counts when enough scans in a row agree.
 */
#ifndef TSNAP_LIVE_LIVE_LAST_WAKERS_H
#define TSNAP_LIVE_LIVE_LAST_WAKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "waits/chain.h"

struct edge_waiter;

/* Wakers of one wait of a thread, as scans have seen them. */
struct wake_history {
	uint64_t wait;	   /* hash of the call and its arguments */
	uint64_t sequence; /* number of the switch out of the wait that was seen last */
	int64_t waker_tid;
	unsigned int wakes;  /* wakes in a row by this thread */
	unsigned int needed; /* wakes needed for an edge; doubled with each change of the waker */
};

/* Zeroed is empty. */
struct live_last_wakers {
	struct keyed histories; /* struct wake_history, by tid */
};

/* Makes an edge to the thread that ended the waiter's last waits, if one and the same thread ended
 * them. waiter: waits for a lock or an event (WAIT_LOCK, WAIT_EVENT). */
void live_last_waker_edge(struct live_last_wakers *wakers, const struct edge_waiter *waiter,
			  struct edge *edge);
void live_last_wakers_done(struct live_last_wakers *wakers);

#endif
