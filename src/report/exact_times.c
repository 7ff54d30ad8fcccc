/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/exact_times.h"
#include "report/value.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const int8_t kinds_of_states[STATE_COUNT] = {
	[STATE_ON] = TIME_ON,	      [STATE_RQ] = TIME_RQ,	     [STATE_DISK] = TIME_DISK,
	[STATE_SLEEP] = TIME_ASLEEP,  [STATE_STOPPED] = TIME_ASLEEP, [STATE_IDLE] = TIME_ASLEEP,
	[STATE_PARKED] = TIME_ASLEEP, [STATE_ZOMBIE] = -1,
};

int time_kind_of(int64_t state)
{
	return state >= 0 && state < STATE_COUNT ? kinds_of_states[state] : -1;
}

int64_t time_kind_state(int kind)
{
	static const int8_t states[TIME_KINDS] = {STATE_ON, STATE_RQ, STATE_DISK, STATE_SLEEP};

	return states[kind];
}

bool exact_times_has(const struct exact_times *times, const struct sample *sample)
{
	return (times->shared >> TIME_ON & 1 && sample->sums.cpu_us > 0) ||
	       (times->shared >> TIME_RQ & 1 && sample->sums.runq_us > 0) ||
	       (times->shared >> TIME_DISK & 1 && sample->sums.dwait_us > 0) ||
	       (times->shared >> TIME_ASLEEP & 1 && sample->sums.sleep_us > 0);
}

void exact_times_at(struct exact_times *times, int64_t elapsed_us)
{
	times->elapsed_us = elapsed_us;
}

/* Index of the thread in threads; it is added if it is new. */
static uint32_t thread_find(struct exact_times *times, const struct sample *sample)
{
	uint32_t slot = id_map_get(&times->by_tid, (uint64_t)sample->thread.tid);
	struct exact_thread *thread;

	/* a recording has no start times: a tid is taken for one thread all through an interval */
	if (slot && times->threads[slot - 1].start_ns == sample->thread.start_ns)
		return slot - 1;
	times->threads = memory_grow(times->threads, &times->capacity, times->count + 1,
				     sizeof(*times->threads));
	thread = &times->threads[times->count++];
	*thread = (struct exact_thread){
		.tid = sample->thread.tid, .start_ns = sample->thread.start_ns, .last_state = -1};
	for (int kind = 0; kind < TIME_KINDS; kind++)
		thread->parts[kind].us = ABSENT;
	id_map_set(&times->by_tid, (uint64_t)sample->thread.tid, (uint32_t)times->count);
	return (uint32_t)times->count - 1;
}

/* Adds the times of a sample, as far as they belong to the interval. */
static void thread_add(const struct exact_times *times, struct exact_thread *thread,
		       const struct sample *sample)
{
	const int64_t us[TIME_KINDS] = {sample->sums.cpu_us, sample->sums.runq_us,
					sample->sums.dwait_us, sample->sums.sleep_us};
	int64_t all_us = 0;

	for (int kind = 0; kind < TIME_KINDS; kind++)
		all_us = sum(all_us, us[kind]);
	for (int kind = 0; kind < TIME_KINDS; kind++) {
		int64_t *part_us = &thread->parts[kind].us;

		if (us[kind] < 0) /* ABSENT */
			continue;
		if (all_us > times->elapsed_us)
			*part_us = sum(*part_us, ratio(us[kind], times->elapsed_us, all_us));
		else /* zero is added, too: no CPU could predict a branch on it */
			*part_us = sum(*part_us, us[kind]);
	}
}

struct exact_note exact_times_add(struct exact_times *times, const struct sample *sample)
{
	if (sample->thread.tid == ABSENT)
		return EXACT_NOTE_NONE;
	return exact_times_add_at(times, thread_find(times, sample), sample);
}

struct exact_note exact_times_add_at(struct exact_times *times, uint32_t slot,
				     const struct sample *sample)
{
	struct exact_note note = EXACT_NOTE_NONE;
	int kind = time_kind_of(sample->now.state);
	struct exact_thread *thread = &times->threads[slot];

	thread_add(times, thread, sample);
	/* on a CPU a thread goes from call to call: each sample is another look */
	note.began = thread->last_state != sample->now.state || kind == TIME_ON ||
		     sample->now.state_us == ABSENT ||
		     sample->now.state_us < times->elapsed_us - thread->last_us;
	thread->last_state = (int32_t)sample->now.state;
	thread->last_us = times->elapsed_us;
	if (kind < 0 || sample->scan.weight_us <= 0)
		return note;
	thread->parts[kind].sampled_us =
		sum(thread->parts[kind].sampled_us, sample->scan.weight_us);
	thread->parts[kind].episodes += note.began;
	times->weight_us = sample->scan.weight_us / sample_scans(sample);
	note.part = slot * TIME_KINDS + (uint32_t)kind;
	return note;
}

struct exact_note exact_times_add_again(struct exact_times *times, const struct sample *sample)
{
	struct exact_note note = {.part = EXACT_PART_NONE, .again = true};
	int kind = time_kind_of(sample->now.state);
	uint32_t slot;

	if (sample->thread.tid == ABSENT || kind < 0 || sample->scan.weight_us <= 0)
		return note;
	slot = thread_find(times, sample);
	times->threads[slot].parts[kind].sampled_us =
		sum(times->threads[slot].parts[kind].sampled_us, sample->scan.weight_us);
	note.part = slot * TIME_KINDS + (uint32_t)kind;
	return note;
}

bool exact_times_part(const struct exact_times *times, const struct sample *sample, uint32_t *part)
{
	uint32_t slot = id_map_get((struct id_map *)&times->by_tid, (uint64_t)sample->thread.tid);
	int kind = time_kind_of(sample->now.state);

	if (!slot || kind < 0 || sample->scan.weight_us <= 0 ||
	    times->threads[slot - 1].start_ns != sample->thread.start_ns)
		return false;
	*part = (slot - 1) * TIME_KINDS + (uint32_t)kind;
	return true;
}

uint32_t exact_times_add_account(struct exact_times *times, const struct sample *account)
{
	uint32_t slot;

	if (account->thread.tid == ABSENT)
		return EXACT_PART_NONE;
	slot = thread_find(times, account);
	thread_add(times, &times->threads[slot], account);
	return slot;
}

bool exact_times_full(const struct exact_times *times)
{
	return times->count >= EXACT_THREADS_MAX;
}

void exact_times_clear(struct exact_times *times)
{
	id_map_clear(&times->by_tid);
	times->count = 0;
}

void exact_times_end_interval(struct exact_times *times)
{
	exact_times_clear(times);
	memset(times->all_us, 0, sizeof(times->all_us));
	memset(times->covered_us, 0, sizeof(times->covered_us));
}

void exact_times_done(struct exact_times *times)
{
	id_map_clear(&times->by_tid);
	free(times->threads);
	*times = (struct exact_times){0};
}
