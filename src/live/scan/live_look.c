/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_look.h"
#include "live/scan/live_namespace.h"
#include "base/clock.h"

#define CLASS_NS (50 * NS_PER_MS) /* most time to find out why threads sleep */

/* Destination of samples. */
struct look {
	sample_callback *take;
	void *to;
};

/* State that a look replaces, and scans go on with afterwards. */
struct look_kept {
	struct filter *filter;
	uint64_t needs, filter_needs, stack_needs;
	bool work_wanted;
	struct scan batch;
	int (*take)(void *take_to, const struct scan *batch);
	void *take_to;
};

static int look_take(void *to, const struct scan *batch)
{
	const struct look *look = to;

	for (size_t i = 0; i < batch->count; i++)
		look->take(look->to, &batch->samples[i]);
	return 0;
}

static void record_look(void *to, const struct thread_state *record)
{
	struct live *live = to;
	struct thread_state completed;
	enum thread_state_kind state;
	bool ambiguous;

	if (live->context.view.translated && record->sched.tid &&
	    !live_namespace_meet(&live->context, record))
		return;
	if (live_is_own(&live->context, record->identity.tgid))
		return;
	record = live_seed_whole(record, &completed);
	if (!record || filter_excludes(live->context.wants.filter, record->identity.tgid,
				       record->identity.tid))
		return;
	state = record_state(record, &live->context.now.scan_time, &ambiguous);
	/* no CPU is interrupted for the stack of the thread that runs there */
	if (state_row(state)->active && live->stacks.needs)
		return;
	live_batch_add(live, record, NULL, state, 1);
}

/* Looks at all records, in a walk of its own beside those of scans, which go on where they were. */
static int records_look(struct live *live)
{
	struct thread_table *table = &live->context.kernel.table;
	uint32_t walked = table->walked;
	int err = thread_table_scan(table, record_look, live);

	table->walked = walked;
	live_seed_visit(&live->context.seed, record_look, live);
	live_batch_settle(live);
	look_take(live->source.take_to, &live->batch.scan);
	live->batch.scan.count = 0;
	return err;
}

int live_look(struct source *source, struct filter *filter, uint64_t needs, sample_callback *take,
	      void *to)
{
	struct live *live = (struct live *)source;
	struct look look = {take, to};
	const struct look_kept kept = {live->context.wants.filter,
				       live->context.wants.needs,
				       live->context.wants.filter_needs,
				       live->stacks.needs,
				       live->context.wants.work,
				       live->batch.scan,
				       source->take,
				       source->take_to};
	int err;

	live->context.wants.filter = filter;
	live->context.wants.filter_needs = filter_needs(filter);
	live->context.wants.needs = sample_needs_close(needs | live->context.wants.filter_needs);
	live->stacks.needs &= live->context.wants.filter_needs & NEEDS_STACKS ? UINT64_MAX : 0;
	live->context.wants.work = false;
	live->context.now.scan_time.now_ns = clock_monotonic_ns();
	live->batch.scan = (struct scan){.time_us = clock_utc_us(), .samples = live->batch.samples};
	proc_values_pool_clear(&live->batch.proc_values);
	source->take = look_take;
	source->take_to = &look;
	waits_give_time(lookup_waits(live->context.lookup), live->context.now.scan_time.now_ns,
			CLASS_NS);
	err = records_look(live);
	live->context.wants.filter = kept.filter;
	live->context.wants.needs = kept.needs;
	live->context.wants.filter_needs = kept.filter_needs;
	live->stacks.needs = kept.stack_needs;
	live->context.wants.work = kept.work_wanted;
	live->batch.scan = kept.batch;
	source->take = kept.take;
	source->take_to = kept.take_to;
	return err;
}
