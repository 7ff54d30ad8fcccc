/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --trace on the live host: histograms from the kernel, each with whatever is known of its thread.
 */
#ifndef TSNAP_LIVE_LIVE_TRACE_H
#define TSNAP_LIVE_LIVE_TRACE_H

#include "live/live_state.h"

/* struct source's */
int live_traced(struct source *source, bool all, uint64_t needs, trace_taker *take, void *to,
		struct error *e);
void live_events(struct source *source, uint64_t needs, event_taker *take, void *to);

#endif
