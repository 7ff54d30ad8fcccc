/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of threads that sleep on since an earlier scan. They are reported again without a lookup,
 * as long as lookups would find the same again in what they keep. For live_batch.c.
 *
 * A thread that was not switched since is in the same call. What others may change meanwhile
 * (holders, peers) is read again after a second or two of the wait, or up to eight
 * (wait_episode_until()), and then all of the sample is looked up again; users and cgroups are read
 * less often (LOOKUP_STILL_NS). Waits of which a later scan knows more are not reported again, nor
 * is whatever is read anew for each sample.
 *
 * Where samples are only summed up (struct source, take_again), most scans leave such samples out.
 * A chain is followed again when one of its threads was switched. Others may come to stand between
 * them meanwhile, so that chains are also followed again in each scan for the first half second of
 * a wait, and then after a fifth of its length at most.
 */
#ifndef TSNAP_LIVE_LIVE_REPEAT_H
#define TSNAP_LIVE_LIVE_REPEAT_H

#include <stdbool.h>

#include "base/cache.h"
#include "kernel/record.h"
#include "sample/sample.h"
#include "sample/source.h"

#define REPEAT_LOOKS 4

struct chain_sleepers;
struct live_context;
/* A sample that is kept; valid until the end of the scan. */
struct repeated;

/* Zeroed is empty. */
struct live_repeat {
	struct cache samples;	     /* struct repeated, by the record's key */
	const struct source *source; /* source of the samples, whose owner sums them up or not */
	int64_t looked_ns[REPEAT_LOOKS]; /* last scan that had waits of each length */
	int64_t left_out_us; /* waits that have lasted so long are left out of this scan */
};

/* Call before and after the samples of a scan. */
void live_repeat_begin_scan(struct live_repeat *repeat, const struct live_context *context);
void live_repeat_end_scan(struct live_repeat *repeat, const struct live_context *context);

/* True if the scan leaves the thread's sample out: a later one stands for it, too. weight_us: time
 * of the scan. */
bool live_repeat_leave_out(struct live_repeat *repeat, struct live_context *context,
			   const struct thread_state *record, enum thread_state_kind state,
			   int64_t weight_us);
/* Fills all of a sample but its totals and requests in flight from an earlier one of the thread's
 * present sleep. NULL: it is to be looked up. */
struct repeated *live_repeat_fill(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, enum thread_state_kind state,
				  struct sample *sample);
/* Keeps a sample if it may be reported again; all of it was looked up, but for stacks and chains.
 * compat: its call is of a 32-bit program. NULL: it is not kept. */
struct repeated *live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, const struct sample *sample,
				  bool compat);
/* Call before a sample is handed over, complete: it then stands for scans that left it out, too,
 * and later scans may leave it out. Its tid is ABSENT if the filter refuses it. sleepers: of its
 * chain; NULL: it has none. */
void live_repeat_given(const struct live_repeat *repeat, struct repeated *repeated,
		       struct sample *sample, const struct chain_sleepers *sleepers);
/* Hands over what scans have left out (struct source, settle). */
void live_repeat_settle(struct live_repeat *repeat);
void live_repeat_sweep(struct live_repeat *repeat, const struct live_context *context);
/* Drops all samples. Call before names that samples point to are dropped, or keys begin anew. */
void live_repeat_clear(struct live_repeat *repeat);

#endif
