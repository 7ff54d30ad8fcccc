/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that answer on connections: those of the process at the other end that ended a thread's
 * last waits on one. They are remembered over scans, for each waiting thread and process at the
 * other end. For live_peers.c.
 *
 * A record shows which thread ended its thread's last wait, whatever that was for. If a thread
 * waits for several processes in turn, the waker is of the last one, so a waker counts for the
 * process that it belongs to. If a thread has several connections to the same process, it is not
 * known which one the waker answered on: then it counts for none.
 */
#ifndef TSNAP_LIVE_LIVE_PEER_WAKERS_H
#define TSNAP_LIVE_LIVE_PEER_WAKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

struct edge_waiter;
struct live_context;

/* Zeroed is empty. */
struct live_peer_wakers {
	struct keyed histories; /* struct peer_waker_history, by thread and process */
};

/* The thread of the other end's process that ended the last wait on a connection. */
struct peer_waker {
	int64_t tid;  /* ABSENT: not known, or now one thread and now another */
	bool settled; /* thread ended so many waits in a row that the connection is its own */
};

/* Notes that the thread waits on a connection to that process, and the thread that ended its last
 * wait. inode: of the socket or pipe at the other end; ABSENT: not known. */
struct peer_waker live_peer_wakers_note(struct live_peer_wakers *wakers,
					struct live_context *context,
					const struct edge_waiter *waiter, int64_t pid,
					int64_t inode);
void live_peer_wakers_done(struct live_peer_wakers *wakers);

#endif
