/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of threads that sleep on since an earlier scan. They are reported again without a lookup,
 * as long as lookups would find the same again in what they keep. For live_batch.c.
 *
 * A thread that was not switched since is in the same call. What others may change meanwhile
 * (holders, peers) is read again after a second or two of the wait, or up to eight
 * (wait_episode_until()). If that gives the wait another class, and after some seconds in any case,
 * all of the sample is looked up again; users and cgroups are read less often (LOOKUP_STILL_NS).
 * Waits of which a later scan knows more are not reported again, nor is whatever is read anew for
 * each sample.
 *
 * Where samples are only summed up (struct source, take_again), most scans leave such samples out.
 * A chain is followed again when one of its threads was switched. Unless all of its edges are firm
 * (waits/chain.h), others may come to stand between them meanwhile, so that it is also followed
 * again in each scan for the first half second of a wait, and then after a fifth of its length at
 * most.
 *
 * A wait that one scan has left out rests: later scans pass it, and read neither its record nor its
 * sample, until something may change in it.
 */
#ifndef TSNAP_LIVE_LIVE_REPEAT_H
#define TSNAP_LIVE_LIVE_REPEAT_H

#include <stdbool.h>

#include "base/cache.h"
#include "base/index.h"
#include "kernel/record.h"
#include "live/live_chains.h"
#include "sample/sample.h"
#include "sample/source.h"

#define REPEAT_LOOKS 4

struct live_context;
/* A sample that is kept; valid until the end of the scan. */
struct repeated;

/* Threads that may have been switched since the last scan. */
struct repeat_changed {
	struct index keys, pids; /* of their records and processes */
	bool any;		 /* some may lack */
};

/* What scans read of a wait that they may pass. Zeroed: none may. */
struct repeat_rest {
	int64_t out_ns;	  /* begin of the wait */
	int64_t until_ns; /* its sample may be repeated until then; 0: it does not rest */
	uint32_t keys[CHAIN_SLEEPERS_MAX]; /* records of its chain's other threads */
	uint32_t key_count;
	bool firm;	       /* only they can change the chain */
	int64_t pid;	       /* process whose threads can, too; 0: none */
	uint32_t passed_count; /* scans that have passed it, and their weights */
	int64_t passed_us;
	bool passed; /* by this scan */
};

/* Zeroed is empty. */
struct live_repeat {
	struct cache samples;	     /* struct repeated, by the record's key */
	const struct source *source; /* source of the samples, whose owner sums them up or not */
	int64_t looked_ns[REPEAT_LOOKS]; /* last scan that had waits of each length */
	int64_t left_out_us; /* waits that have lasted so long are left out of this scan; INT64_MAX:
				none are */
	struct repeat_changed changed;
};

/* Call before and after the samples of a scan, whose capture is context->now.capture. The end
 * drops samples that are not used any more, when housekeeping is done. */
void live_repeat_begin_scan(struct live_repeat *repeat, const struct live_context *context);
void live_repeat_end_scan(struct live_repeat *repeat, const struct live_context *context);

/* True if this scan leaves out some samples. */
static inline bool live_repeat_leaves_out(const struct live_repeat *repeat)
{
	return repeat->left_out_us != INT64_MAX;
}

/* The sample that is kept of the thread's present sleep, which may be too old; NULL: none is. */
struct repeated *live_repeat_find(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, enum thread_state_kind state);
/* True if such a scan leaves the sample out: a later one stands for it, too. weight_us: time of the
 * scan. */
bool live_repeat_leave_out(const struct live_repeat *repeat, struct live_context *context,
			   struct repeated *repeated, int64_t weight_us);
/* Fills the rest of the wait of a sample that this scan has left out, or has been given, and the
 * key of its record. False: scans must look at it. */
bool live_repeat_rest(const struct repeated *repeated, uint32_t *key, struct repeat_rest *rest);
/* True if this scan passes some waits that rest; and true if it passes this one, and counts that.
 */
bool live_repeat_passes(const struct live_repeat *repeat, const struct live_context *context);
bool live_repeat_pass(const struct live_repeat *repeat, const struct live_context *context,
		      struct repeat_rest *rest, int64_t weight_us);
/* Notes with the sample of that record the scans that have passed it: it stands for them, too. */
void live_repeat_rest_settle(struct live_repeat *repeat, uint32_t key, struct repeat_rest *rest);
/* Fills all of a sample but its totals and requests in flight from the one that is kept. False: it
 * is to be looked up. */
bool live_repeat_fill(struct live_context *context, const struct thread_state *record,
		      enum thread_state_kind state, struct repeated *repeated,
		      struct sample *sample);
/* Keeps a sample if it may be reported again; all of it was looked up, but for stacks and chains.
 * compat: its call is of a 32-bit program. NULL: it is not kept. */
struct repeated *live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, const struct sample *sample,
				  bool compat);
/* Call before a sample is handed over, complete: it then stands for scans that left it out, too,
 * and later scans may leave it out. Its tid is ABSENT if the filter refuses it. sleepers: of its
 * chain; NULL: it has none. */
void live_repeat_given(const struct live_repeat *repeat, struct live_context *context,
		       struct repeated *repeated, struct sample *sample,
		       const struct chain_sleepers *sleepers);
/* Hands over what scans have left out (struct source, settle). */
void live_repeat_settle(struct live_repeat *repeat);
/* Drops all samples. Call before names that samples point to are dropped, or keys begin anew. */
void live_repeat_clear(struct live_repeat *repeat);

#endif
