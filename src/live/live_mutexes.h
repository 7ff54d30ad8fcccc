/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mutexes, Python's GIL and Java's monitors that threads wait for in one scan, and their holders:
 * each is read once for all that wait for it. A mutex whose holder has not run since it was read is
 * not read again for a while, as its holder has to let go of it.
 */
#ifndef TSNAP_LIVE_LIVE_MUTEXES_H
#define TSNAP_LIVE_LIVE_MUTEXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/index.h"

struct edge;
struct edge_waiter;
struct live_context;
struct mutex;

struct mutex_list {
	struct mutex *mutexes;
	size_t count, capacity;
	struct index slots; /* hash of process, address and call, to slot plus one */
};

/* Zeroed is empty. */
struct live_mutexes {
	struct mutex_list now, before; /* mutexes of this scan, and of the last one */
};

void live_mutexes_begin(struct live_mutexes *mutexes); /* begins another scan */
void live_mutexes_done(struct live_mutexes *mutexes);
/* Fills the edge to the holder, if it is known, and the slot of the lock, plus one. */
void live_mutex_edge(struct live_context *context, struct live_mutexes *mutexes,
		     const struct edge_waiter *waiter, struct edge *edge, size_t *slot);
/* True if the lock still has the same holder. slot: of the lock, plus one. */
bool live_mutex_holds(struct live_context *context, struct live_mutexes *mutexes, size_t slot);

#endif
