/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Edges to the holders of locks of the kernel, for threads in D, and for those in S whose call
 * shows no other wait (a lock that a signal ends the wait for): see kernel/kernel_lock.h and
 * kernel/lock_search.h. Where neither is possible there are no edges. For live_edges.c. */
#ifndef TSNAP_LIVE_CHAINS_LIVE_KERNEL_LOCKS_H
#define TSNAP_LIVE_CHAINS_LIVE_KERNEL_LOCKS_H

#include <stdbool.h>

#include "base/index.h"
#include "kernel/kernel_lock.h"
#include "kernel/lock_name.h"
#include "waits/chain.h"

struct edge_waiter;
struct live_context;
struct text;

/* Zeroed: not looked for yet. */
struct live_kernel_locks {
	bool looked;
	int program;		    /* -1: none */
	struct lock_search *search; /* NULL: none */
	struct lock_fields *fields; /* NULL: locks have no names */
	struct keyed waits;	    /* struct kernel_wait, by thread, of earlier scans, too */
	struct keyed found;	    /* struct kernel_lock, by address: found in this scan */
	struct keyed checked; /* locks read again since live_kernel_locks_check(), by address */
};

/* Fills the edge of a thread that waits for a lock of the kernel. False: it waits for none, or that
 * is not known. *lock: what was read. *name: of the lock, its field NULL if it is not known. */
bool live_kernel_lock_edge(struct live_context *context, struct live_kernel_locks *locks,
			   const struct edge_waiter *waiter, struct edge *edge,
			   struct kernel_lock *lock, struct lock_name *name);
/* Adds the lock's name: "mmap_lock of 4711 java", "i_rwsem of /data/x", "rtnl_mutex". */
void live_kernel_lock_name(struct live_context *context, const struct edge_waiter *waiter,
			   const struct lock_name *name, struct text *text);
/* Begins a new scan: the owner of a lock is read anew, once for all threads that wait for it. What
 * a thread waits for is read anew only if it has run. */
void live_kernel_locks_begin(struct live_kernel_locks *locks);
/* Drops the locks that were read again before: they are too old from now on. */
void live_kernel_locks_check(struct live_kernel_locks *locks);
/* Reads a lock again. True: the same thread still waits for the same lock, and this has the same
 * owner. slept: the thread's record shows that it still waits, so that it is enough to read the
 * lock for one of its waiters. */
bool live_kernel_lock_holds(struct live_kernel_locks *locks, int64_t tid,
			    const struct kernel_lock *lock, bool slept);
void live_kernel_locks_done(struct live_kernel_locks *locks);

#endif
