/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of threads that sleep on since an earlier scan. They are reported again without a lookup,
 * as long as lookups would find the same again in what they keep. For live_batch.c.
 *
 * A thread that was not switched since is in the same call. What others may change meanwhile
 * (holders, peers) is read again after a second or two of the wait, or up to eight
 * (wait_episode_until()), and then all of the sample is looked up again; users and cgroups are read
 * less often (LOOKUP_STILL_NS). Waits of which a later scan knows more are not reported again, nor
 * is whatever is read anew for each sample.
 */
#ifndef TSNAP_LIVE_LIVE_REPEAT_H
#define TSNAP_LIVE_LIVE_REPEAT_H

#include <stdbool.h>

#include "base/cache.h"
#include "kernel/record.h"
#include "sample/sample.h"

struct live_context;

/* Zeroed is empty. */
struct live_repeat {
	struct cache samples; /* struct repeated, by the record's key */
};

/* Fills all of a sample but its totals and requests in flight from an earlier one of the thread's
 * present sleep. False: it is to be looked up. */
bool live_repeat_fill(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, enum thread_state_kind state,
		      struct sample *sample);
/* Keeps a sample if it may be reported again; all of it was looked up, but for stacks and chains.
 * compat: its call is of a 32-bit program. */
void live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, const struct sample *sample, bool compat);
void live_repeat_sweep(struct live_repeat *repeat, const struct live_context *context);
/* Drops all samples. Call before names that samples point to are dropped, or keys begin anew. */
void live_repeat_clear(struct live_repeat *repeat);

#endif
