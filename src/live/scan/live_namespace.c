/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_namespace.h"
#include "base/names.h"

/* Carries over what the thread did from its seed until its record was made. That and the record's
 * totals are all of its time, so the record was made when its totals began. */
static void seed_carry(struct live_context *context, const struct thread_state *seed,
		       const struct thread_state *record)
{
	struct live_scan_time made = context->now.scan_time;
	struct live_totals totals;
	struct sample sample;
	enum thread_state_kind state;
	bool ambiguous;

	record_totals(record, &context->now.scan_time,
		      record_state(record, &context->now.scan_time, &ambiguous), &totals);
	made.now_ns -= totals.cpu_ns + totals.runq_ns + totals.disk_ns + totals.sleep_ns;
	state = record_state(seed, &context->now.scan_time, &ambiguous);
	record_totals(seed, &made, state, &totals);
	/* a runnable thread that was on no CPU waited for one: no switch had shown it yet */
	if (seed->sched.on_cpu && state == STATE_RQ && made.now_ns > (int64_t)seed->sched.out_ns)
		totals.runq_ns = made.now_ns - (int64_t)seed->sched.out_ns;
	record_sample(record, &context->now.scan_time, STATE_SLEEP, &sample);
	totals_carry(&context->totals, &totals, &sample);
}

bool live_namespace_meet(struct live_context *context, const struct thread_state *record)
{
	const struct thread_state *seed;

	/* the first switch out shows the record's thread, where the probe did not have the task */
	if (!(record->identity.known & IDENTITY_FULL) || !record->identity.tid)
		return false;
	seed = live_seed_waiting(&context->seed, record->identity.tid);
	if (seed) {
		if (context->wants.needs & NEED_TOTALS)
			seed_carry(context, seed, record);
		live_seed_remove(&context->seed, record->identity.tid);
	}
	return true;
}

void live_namespace_waker(struct live_context *context, struct sample *sample)
{
	struct thread_table *table = &context->kernel.table;
	struct thread_state waker;
	uint32_t key;

	if (sample->waker.tid == ABSENT || !sample->waker.tid) /* 0: an idle CPU */
		return;
	if (thread_table_key(table, (uint32_t)sample->waker.tid, &key) ||
	    thread_table_get(table, key, &waker) || !(waker.identity.known & IDENTITY_FULL)) {
		sample->waker.tid = ABSENT;
		return;
	}
	sample->waker.tid = waker.identity.tid ? waker.identity.tid : ABSENT;
	sample->waker.comm = name_transient(waker.identity.comm, sizeof(waker.identity.comm));
}
