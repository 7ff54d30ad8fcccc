/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_cpus.h"
#include "live/live_state.h"

static void cpus_read(struct live *live)
{
	bool unsure;

	index_empty(&live->cpus.threads);
	live->cpus.moment_ns = live->moment.now_ns;
	for (size_t i = 0; live->capture && i < live->capture->count; i++) {
		const struct thread_state *record = &live->capture->threads[i].record;

		if (record->identity.tid && !live_is_own(live, record->identity.tgid) &&
		    record_doing(record, &live->moment, &unsure) == DOING_ON)
			*index_put(&live->cpus.threads, record->sched.cpu, NULL) = i + 1;
	}
}

const struct thread_state *live_cpus_thread(struct live *live, int64_t cpu)
{
	const uint64_t *place;

	if (live->cpus.moment_ns != live->moment.now_ns)
		cpus_read(live);
	place = live->capture ? index_find(&live->cpus.threads, (uint64_t)cpu) : NULL;
	return place ? &live->capture->threads[*place - 1].record : NULL;
}

const struct thread_state *live_cpus_next(struct live *live, size_t *at)
{
	uint64_t cpu, place;

	if (live->cpus.moment_ns != live->moment.now_ns)
		cpus_read(live);
	if (!live->capture || !index_next(&live->cpus.threads, at, &cpu, &place))
		return NULL;
	return &live->capture->threads[place - 1].record;
}
