/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sampler among others on the same probes. The one that shares is a sampler like any; one that
 * attaches finds records that began before it came.
 */
#include "live/live_state.h"
#include "base/clock.h"

/* Begins the totals of a thread. Their present values are not this sampler's to report: the
 * thread's first row has what it did since this sampler came. */
static void totals_begin(void *to, const struct thread_state *record)
{
	struct live *live = to;
	struct thread_state completed;
	struct live_totals totals;
	struct sample sample;
	enum thread_state_kind state;
	bool ambiguous;

	if (live->context.view.translated &&
	    (!(record->identity.known & IDENTITY_FULL) || !record->identity.tid))
		return;
	/* completed as live_scan does it, so that it is the same thread there */
	record = live_seed_whole(record, &completed);
	if (!record)
		return;
	state = record_state(record, &live->context.now.scan_time, &ambiguous);
	record_sample(record, &live->context.now.scan_time, state, &sample);
	record_totals(record, &live->context.now.scan_time, state, &totals);
	totals_take(&live->context.totals, &totals, &sample);
}

int live_share_begin(struct live *live, const struct kernel_options *options, struct error *e)
{
	const struct share *share = &live->context.kernel.share;
	int err;

	if (options->attach) {
		live->context.now.scan_time.now_ns = clock_monotonic_ns();
		if (live->context.wants.needs & NEED_TOTALS)
			thread_table_scan(&live->context.kernel.table, totals_begin, live);
		return 0;
	}
	err = kernel_publish(&live->context.kernel, options, e);
	if (err)
		return err;
	if (live->context.kernel.share_cleared)
		text_add_format(
			&live->remarks,
			"'%s' was left by a tsnap that was killed: removed and started again\n",
			options->share);
	if (share->needs_owner)
		text_add_format(
			&live->remarks,
			"links can't be pinned here: others can attach to '%s' only as long "
			"as this tsnap runs\n",
			options->share);
	return 0;
}
