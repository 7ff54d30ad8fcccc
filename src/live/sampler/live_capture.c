/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/live_capture.h"
#include "live/live_state.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_STEP 32 /* records between two looks at the budget */
void live_capture_done(struct live_capture *capture)
{
	free(capture->threads);
	*capture = (struct live_capture){0};
}

/* When this thread was woken for the scan, and when it came on its CPU: whom it displaced left at
 * that very moment. */
static void own_times_read(struct live *live, int64_t tick_ns)
{
	struct thread_table *table = &live->kernel.table;
	struct live_moment *moment = &live->moment;
	struct thread_state own;
	uint32_t key;

	moment->own_in_ns = moment->own_wake_ns = 0;
	if (thread_table_key(table, live->own_tid, &key) || thread_table_get(table, key, &own))
		return;
	moment->own_in_ns = (int64_t)own.sched.in_ns;
	if ((int64_t)own.wake.wake_ns >= tick_ns)
		moment->own_wake_ns = (int64_t)own.wake.wake_ns;
	moment->own_cpu = own.sched.cpu;
}

static void awake_add(void *to, uint32_t key)
{
	struct live *live = to;

	index_put(&live->awake, key, NULL);
}

static void record_copy(void *to, const struct thread_state *record)
{
	struct live *live = to;
	struct live_capture *capture = &live->capture;
	struct captured *copy;

	if (live_is_own(live, record->identity.tgid))
		return;
	if (live_refuses(live, record) && !live->keep_house && !live->config.descendants &&
	    !live->translated && /* where ids are, live_scan.c must meet it first */
	    !live_may_block(live, record))
		return;
	capture->threads = memory_grow(capture->threads, &capture->capacity, capture->count + 1,
				       sizeof(*capture->threads));
	copy = &capture->threads[capture->count++];
	copy->record = *record;
	copy->switched = copy->asked = false;
	if (record->sched.on_cpu && record->sched.cpu < (uint32_t)live->kernel.host.cpus_possible)
		live->wanted_cpus[record->sched.cpu] = 1;
	if (capture->count % LIMIT_STEP == 0)
		realtime_limit(&live->realtime);
}

static bool unlisted_passes(void *to, const struct thread_state *record, uint32_t key)
{
	struct live *live = to;

	if (++live->capture.passed % LIMIT_STEP == 0)
		realtime_limit(&live->realtime);
	return record_settled(record) || index_find(&live->awake, key);
}

static void unlisted_copy(void *to, const struct thread_state *record)
{
	struct live *live = to;

	index_put(&live->awake, record->key, NULL);
	record_copy(to, record);
}

/* The list of changes has lost some: whoever is not settled may be one of those. */
static void unlisted_find(struct live *live)
{
	const struct thread_visitor visitor = {unlisted_passes, unlisted_copy, live};
	bool end;

	thread_table_rewind(&live->kernel.table);
	thread_table_walk(&live->kernel.table, &visitor, UINT32_MAX, &end);
	thread_table_rewind(&live->kernel.table);
}

static void records_copy(struct live *live)
{
	const struct thread_visitor visitor = {NULL, record_copy, live};
	uint64_t key, value;

	live->capture.count = 0;
	live->capture.listed = changed_reader_take(&live->kernel.changed, awake_add, live);
	for (size_t at = 0; index_next(&live->awake, &at, &key, &value);)
		if (key < SEED_KEY)
			thread_table_visit(&live->kernel.table, (uint32_t)key, &visitor);
	if (!live->capture.listed)
		unlisted_find(live);
}

/* What is on a CPU is looked at there. Its call began when the record says so, unless it has begun
 * another one since. */
static void cpus_look(struct live *live)
{
	struct live_capture *capture = &live->capture;

	live->moment.tick_count = kernel_ticks_read(&live->kernel, live->wanted_cpus, live->ticks);
	live_cpu_stacks_look(live);
	memset(live->wanted_cpus, 0, (size_t)live->kernel.host.cpus_possible);
	for (size_t i = 0; i < capture->count; i++) {
		struct captured *copy = &capture->threads[i];
		struct thread_state again = {0};

		if (!copy->record.sched.on_cpu)
			continue;
		thread_table_get(&live->kernel.table, copy->record.key, &again); /* or it is gone */
		copy->switched = again.sched.sequence_done != copy->record.sched.sequence_done;
		if (copy->record.call_ns)
			record_call_check(&copy->record, &again);
	}
	realtime_limit(&live->realtime);
}

static bool registers_due(const struct live *live, const struct thread_state *record)
{
	bool unsure;

	return record->identity.known & IDENTITY_NAME &&
	       registers_lacking(&live->kernel.asker, record) && !record_is_kthread(record) &&
	       filter_wants_state(live->filter, record_doing(record, &live->moment, &unsure));
}

static void registers_ask(struct live *live)
{
	struct live_capture *capture = &live->capture;
	struct thread_state *records[ASK_MAX];
	uint32_t count = 0;

	if (!(live->needs & NEED_SYSCALL))
		return;
	for (size_t i = 0; i < capture->count; i++) {
		struct captured *copy = &capture->threads[i];

		copy->asked = registers_due(live, &copy->record);
		if (!copy->asked)
			continue;
		records[count++] = &copy->record;
		if (count < ASK_MAX)
			continue;
		registers_fill(&live->kernel.asker, &live->kernel.table, records, count,
			       live->idle_wanted);
		count = 0;
		realtime_limit(&live->realtime);
	}
	if (count)
		registers_fill(&live->kernel.asker, &live->kernel.table, records, count,
			       live->idle_wanted);
}

void live_capture(struct live *live, int64_t tick_ns)
{
	/* Records tell of a thread's last switches only: the moment is now, and they come first. */
	live->moment.now_ns = clock_monotonic_ns();
	live->keep_house = live->moment.now_ns - live->housekept_ns >= HOUSEKEEPING_NS;
	records_copy(live);
	own_times_read(live, tick_ns);
	cpus_look(live);
	registers_ask(live);
}
