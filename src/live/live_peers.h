/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread of a process an edge leads to, where the process is what is known. For live_edges.c.
 */
#ifndef TSNAP_LIVE_LIVE_PEERS_H
#define TSNAP_LIVE_LIVE_PEERS_H

#include <stdint.h>

#include "waits/chain.h"

struct live_context;
struct live_edges;

/* Completes an edge to a process. link: the other end, as /proc/PID/fd shows it, or NULL.
 * waker_tid: who woke the waiting thread last. sure: if the process has one thread. */
void edge_to_process(struct live_context *context, struct live_edges *edges, int64_t pid,
		     const char *link, int64_t waker_tid, enum edge_sure sure, struct edge *edge);

#endif
