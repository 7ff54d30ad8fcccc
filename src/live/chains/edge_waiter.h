/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a thread of a chain does: as its sample shows it, or as it is now, from its record, or from
 * /proc where it has none. */
#ifndef TSNAP_LIVE_CHAINS_EDGE_WAITER_H
#define TSNAP_LIVE_CHAINS_EDGE_WAITER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"
#include "proc/lookup_hint.h"
#include "sample/sample.h"

struct live_context;

/* A thread to find the edge of: its record (sched.tid 0: none), what it does as a sample, filled
 * with the needs of live_edge_needs(), and how its call was made. */
struct edge_waiter {
	const struct thread_state *record;
	const struct sample *sample;
	struct lookup_hint hint;
};

/* A thread that was looked at by itself. Must not be copied, as waiter points into it. */
struct edge_looked {
	struct edge_waiter waiter;
	struct thread_state record;
	struct sample sample;
};

/* Reads what that thread does now. pid: of its process, or ABSENT. False: it is gone. */
bool live_edge_look(struct live_context *context, int64_t tid, int64_t pid,
		    struct edge_looked *looked);
/* Fills waiter for a thread that was sampled; it leads to record and sample. */
void live_edge_waiter_of(struct live_context *context, const struct thread_state *record,
			 const struct sample *sample, struct edge_waiter *waiter);

#endif
