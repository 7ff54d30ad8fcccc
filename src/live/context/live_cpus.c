/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/context/live_cpus.h"
#include "live/context/live_context.h"

static void cpus_read(struct live_context *context)
{
	bool ambiguous;
	uint64_t *slot;

	index_empty(&context->now.cpus.threads);
	context->now.cpus.scan_time_ns = context->now.scan_time.now_ns;
	for (size_t i = 0; context->now.capture && i < context->now.capture->count; i++) {
		const struct captured *copy = &context->now.capture->threads[i];
		const struct thread_state *record = &copy->record;

		if (!record->identity.tid || live_is_own(context, record->identity.tgid) ||
		    captured_state(copy, record, &context->now.scan_time, &ambiguous) != STATE_ON)
			continue;
		slot = index_put(&context->now.cpus.threads, record->sched.cpu, NULL);
		if (!ambiguous)
			*slot = i + 1;
	}
}

/* Position of the CPU's thread in the capture, plus one; 0: not known. NULL: the CPU was idle. */
static const uint64_t *slot_of(struct live_context *context, int64_t cpu)
{
	if (context->now.cpus.scan_time_ns != context->now.scan_time.now_ns)
		cpus_read(context);
	return index_find(&context->now.cpus.threads, (uint64_t)cpu);
}

const struct thread_state *live_cpus_thread(struct live_context *context, int64_t cpu)
{
	const uint64_t *slot = slot_of(context, cpu);

	return slot && *slot ? &context->now.capture->threads[*slot - 1].record : NULL;
}

bool live_cpus_idle(struct live_context *context, int64_t cpu)
{
	const struct live_scan_time *scan_time = &context->now.scan_time;

	return context->now.capture && !slot_of(context, cpu) &&
	       (cpu >= scan_time->offline_count || !scan_time->offline[cpu]);
}

const struct thread_state *live_cpus_next(struct live_context *context, size_t *at)
{
	uint64_t cpu, slot;

	if (context->now.cpus.scan_time_ns != context->now.scan_time.now_ns)
		cpus_read(context);
	while (context->now.capture && index_next(&context->now.cpus.threads, at, &cpu, &slot))
		if (slot)
			return &context->now.capture->threads[slot - 1].record;
	return NULL;
}
