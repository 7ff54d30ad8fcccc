/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/context/live_cpus.h"
#include "live/context/live_context.h"

static void cpus_read(struct live_context *context)
{
	bool ambiguous;

	index_empty(&context->now.cpus.threads);
	context->now.cpus.scan_time_ns = context->now.scan_time.now_ns;
	for (size_t i = 0; context->now.capture && i < context->now.capture->count; i++) {
		const struct captured *copy = &context->now.capture->threads[i];
		const struct thread_state *record = &copy->record;

		if (record->identity.tid && !live_is_own(context, record->identity.tgid) &&
		    captured_state(copy, record, &context->now.scan_time, &ambiguous) == STATE_ON &&
		    !ambiguous)
			*index_put(&context->now.cpus.threads, record->sched.cpu, NULL) = i + 1;
	}
}

const struct thread_state *live_cpus_thread(struct live_context *context, int64_t cpu)
{
	const uint64_t *slot;

	if (context->now.cpus.scan_time_ns != context->now.scan_time.now_ns)
		cpus_read(context);
	slot = context->now.capture ? index_find(&context->now.cpus.threads, (uint64_t)cpu) : NULL;
	return slot ? &context->now.capture->threads[*slot - 1].record : NULL;
}

const struct thread_state *live_cpus_next(struct live_context *context, size_t *at)
{
	uint64_t cpu, slot;

	if (context->now.cpus.scan_time_ns != context->now.scan_time.now_ns)
		cpus_read(context);
	if (!context->now.capture || !index_next(&context->now.cpus.threads, at, &cpu, &slot))
		return NULL;
	return &context->now.capture->threads[slot - 1].record;
}
