/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of threads that sleep on since an earlier scan: told again without a lookup, as long as
 * lookups would tell the same again out of what they keep. For live_batch.c.
 *
 * A thread that was not switched since is in the same call. What others may change meanwhile
 * (holders, peers) is read again after a second or two of the wait, or up to eight
 * (wait_episode_until()), and then all of the sample is looked up again; users and cgroups are read
 * less often (LOOKUP_STILL_NS). Not told again are waits of which a later scan knows more, and
 * whatever is read anew for each sample.
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
	struct cache samples; /* by the record's key */
};

/* Fills all of a sample but its totals and requests in flight from an earlier one of the thread's
 * present sleep. False: it is to be looked up. */
bool live_repeat_fill(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, enum thread_state_kind state,
		      struct sample *sample);
/* Keeps a sample that all was looked up of, but for stacks and chains, if it may be told again.
 * compat: of a call of a 32-bit program. */
void live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, const struct sample *sample, bool compat);
void live_repeat_sweep(struct live_repeat *repeat, const struct live_context *context);
/* Before names that samples lead to are dropped, or keys begin anew. */
void live_repeat_clear(struct live_repeat *repeat);

#endif
