/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that ended a thread's last waits, as scans have seen them: a record shows which thread
 * ended its thread's last wait, whatever that was for. What a thread waited for between two scans
 * is not known, so a waker is a guess that counts when enough scans in a row agree. For
 * live_edges.c and live_peers.c.
 */
#ifndef TSNAP_LIVE_CHAINS_LIVE_WAKERS_H
#define TSNAP_LIVE_CHAINS_LIVE_WAKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "waits/chain.h"

struct edge_waiter;
struct live_context;

/* Zeroed is empty. */
struct live_wakers {
	struct keyed waits; /* struct waker_history, by tid */
	struct keyed peers; /* struct waker_history, by thread and process at the other end */
};

/* Makes an edge to the thread that ended the waiter's last waits, if one and the same thread ended
 * them: for waits of which nothing better is known, on condition variables, queues of thread pools,
 * semaphores, eventfds. Only waits that threads alone end are taken (threads_end of struct
 * wait_object): a wait with a timeout may be ended by an interrupt, and its waker is then the
 * thread that was interrupted. */
void live_last_waker_edge(struct live_wakers *wakers, const struct edge_waiter *waiter,
			  struct edge *edge);

/* The thread of the other end's process that ended the last wait on a connection. */
struct peer_waker {
	int64_t tid;  /* ABSENT: not known, or now one thread and now another */
	bool settled; /* thread ended so many waits in a row that the connection is its own */
};

/* Notes that the thread waits on a connection to that process, and the thread that ended its last
 * wait. inode: of the socket or pipe at the other end; ABSENT: not known. If a thread waits for
 * several processes in turn, the waker is of the last one, so a waker counts for the process that
 * it belongs to. If a thread has several connections to the same process, it is not known which one
 * the waker answered on: then it counts for none. */
struct peer_waker live_peer_waker(struct live_wakers *wakers, struct live_context *context,
				  const struct edge_waiter *waiter, int64_t pid, int64_t inode);

void live_wakers_done(struct live_wakers *wakers);

#endif
