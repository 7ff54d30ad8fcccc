/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_repeat.h"
#include "live/context/live_context.h"
#include "base/clock.h"
#include "sample/proc_values.h"

#include <string.h>

#define REPEATED_MAX 4096 /* 3 MB */
#define REPEAT_IDLE_NS (2 * NS_PER_SECOND)

/* Needs that each sample has anew, or that depend on more than the thread's sleep. */
#define NEEDS_ANEW (NEEDS_PROC_VALUES | NEED_PATH)

struct repeated {
	struct cache_entry entry; /* key: the record's */
	int64_t until_ns;
	uint64_t sequence, needs;
	char comm[THREAD_COMM_SIZE];
	struct sample sample;
};

/* True if samples are kept. They are not where idle threads are sampled, too: these are many, and
 * little is looked up of each. A filter that needs totals or requests takes what is new of them
 * itself. */
static bool context_repeats(const struct live_context *context)
{
	return context->wants.work && !(context->wants.needs & NEEDS_ANEW) &&
	       !(context->wants.filter_needs & (NEED_TOTALS | NEED_BLOCK)) &&
	       context->wants.needs & NEED_SYSCALL && !context->view.translated;
}

bool live_repeat_fill(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, enum thread_state_kind state,
		      struct sample *sample)
{
	const struct repeated *before;

	if (state != STATE_SLEEP || !repeat->samples.count)
		return false;
	before = cache_find(&repeat->samples, record->key);
	if (!before || before->sequence != record->sched.sequence_done ||
	    before->needs != context->wants.needs ||
	    context->now.scan_time.now_ns >= before->until_ns ||
	    before->sample.tid != record->identity.tid ||
	    before->sample.start_ns != record_start_ns(record) ||
	    memcmp(before->comm, record->identity.comm, sizeof(before->comm)) != 0)
		return false;
	*sample = before->sample;
	sample->state_us = record_state_us(record, &context->now.scan_time, state);
	if (sample->syscall_us != ABSENT) /* longer by the time slept since */
		sample->syscall_us += sample->state_us - before->sample.state_us;
	return true;
}

void live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
		      const struct thread_state *record, const struct sample *sample, bool compat)
{
	struct repeated *kept;
	struct cache_entry entry;
	bool added;

	if (!context_repeats(context) || sample->state != STATE_SLEEP || sample->wait_open ||
	    sample->io_dev || compat || !record->sched.tid || !record_settled(record))
		return;
	if (repeat->samples.count == REPEATED_MAX && !cache_find(&repeat->samples, record->key))
		return;
	repeat->samples.entry_bytes = sizeof(*kept);
	repeat->samples.entries_max = REPEATED_MAX;
	kept = cache_get(&repeat->samples, record->key, context->now.scan_time.now_ns, &added);
	entry = kept->entry;
	*kept = (struct repeated){
		.entry = entry,
		.until_ns =
			lookup_wait_until(context->lookup, sample->tid, record->sched.sequence_done,
					  context->now.scan_time.now_ns),
		.sequence = record->sched.sequence_done,
		.needs = context->wants.needs,
		.sample = *sample,
	};
	memcpy(kept->comm, record->identity.comm, sizeof(kept->comm));
	kept->sample.cpu_us = kept->sample.runq_us = ABSENT;
	kept->sample.dwait_us = kept->sample.sleep_us = ABSENT;
	kept->sample.vcsw = kept->sample.ivcsw = ABSENT;
}

void live_repeat_sweep(struct live_repeat *repeat, const struct live_context *context)
{
	cache_sweep(&repeat->samples, context->now.scan_time.now_ns, REPEAT_IDLE_NS);
}

void live_repeat_clear(struct live_repeat *repeat)
{
	cache_done(&repeat->samples);
}
