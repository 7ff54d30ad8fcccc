/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --trace on the live host: histograms from the kernel, each with whatever is known of its thread.
 *
 *   probe -> latency_add(): ts_latency_one or _two, a histogram of a thread and a kind's words
 *         -> maps/latency_reader: the maps take turns; the one not written is read and emptied
 *         -> live_trace: the thread, the filter, lookups; a sample with the kind's own fields
 *         -> report/distribution: merged by the key columns -> a grid -> render/
 *
 * A histogram has one writer at a time: its thread, when it arrives on a CPU. So there are no
 * copies for each CPU and no atomic operations. A kind whose events end on any CPU must have the
 * CPU among its words. Turns change about once a second, and a map is read when every program
 * that may have written it has ended (membarrier(2), or some time): nothing is deleted under a
 * probe, no reading is subtracted, and a maximum is that of its interval.
 *
 *   probe -> event_begin(), event_at() .. event_end(): ts_events, a ring for each CPU
 *         -> maps/event_reader: read after every scan, put in the order of time, losses counted
 *         -> live_trace: the same, with arguments and the time of the end
 *         -> report/event_list -> a grid -> render/
 *
 * A single event (--slower, --trace exec) has a key as a histogram has, its end and duration,
 * and up to 272 bytes of its kind's own.
 */
#ifndef TSNAP_LIVE_LIVE_TRACE_H
#define TSNAP_LIVE_LIVE_TRACE_H

#include "live/context/live_context.h"
#include "live/scan/live_dns.h"
#include "live/stacks/live_stacks_state.h"
#include "proc/cgroup_events.h"
#include "sample/source.h"

/* Hand over distributions and events, as traced and events of struct source. */
int live_traced(struct live_context *context, struct live_stacks *stacks, bool all, uint64_t needs,
		trace_callback *take, void *to, struct error *e);
void live_events(struct live_context *context, struct live_stacks *stacks,
		 struct dns_queries *queries, bool all, uint64_t needs, event_callback *take,
		 void *to);
/* Hands over what the kernel counted of control groups since the last time, where --trace incidents
 * is on: events of no thread. */
void live_cgroup_events(struct live_context *context, struct cgroup_events *events,
			event_callback *take, void *to);

#endif
