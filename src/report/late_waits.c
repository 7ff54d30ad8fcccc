/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/late_waits.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_MAX \
	((size_t)2 * LATE_WAITS_MAX) /* beyond, facts of waits without a sample are dropped */
#define SLOT_NONE SIZE_MAX
#define MOVE_PART 4 /* divisor of the samples: so many are handed over before the rest is moved */

struct late_sample {
	struct sample sample;
	struct exact_note note;
	int64_t held_us; /* when it was added, now_us */
	size_t slot;	 /* index of its wait in facts; SLOT_NONE: nothing is looked for */
	size_t names;	 /* index of its stacks in facts, or SLOT_NONE */
};

/* Facts of one wait, or of its stacks. */
struct late_fact {
	bool known;
	struct sample_stack stack;
	const char *connection, *remote, *waits_on, *waits_onsum, *why;
	int64_t waits_on_pid;
};

/* Key of a sample's wait: the same for samples of one process that wait in the same call for the
 * same file; otherwise for samples of one wait. */
static uint64_t wait_key(const struct sample *sample)
{
	uint64_t call = hash_u64((uint64_t)sample->call.nr + 1);

	if (sample->file.name)
		return hash_u64((uint64_t)sample->thread.pid) ^ call ^
		       hash_u64((uintptr_t)sample->file.name);
	return hash_u64((uint64_t)sample->thread.tid + (UINT64_C(1) << 32)) ^ call ^
	       hash_u64((uint64_t)(sample->scan.time_us - sample->now.state_us) / 10000);
}

/* Key of a sample's stacks: functions of a stack are named for all samples that have it. */
static uint64_t names_key(const struct sample *sample)
{
	return hash_u64(hash_u64((uint64_t)sample->stack.ustack) + (uint64_t)sample->stack.kstack);
}

static size_t fact_slot(struct late_waits *waits, uint64_t key)
{
	bool added;
	uint64_t *slot = index_put(&waits->slots, key, &added);

	if (added) {
		waits->facts = memory_grow(waits->facts, &waits->fact_capacity,
					   waits->fact_count + 1, sizeof(*waits->facts));
		waits->facts[waits->fact_count++] = (struct late_fact){.waits_on_pid = ABSENT};
		*slot = waits->fact_count;
	}
	return *slot - 1;
}

static void text_fill(const char **field, const char *known)
{
	if (known)
		*field = known;
}

/* Copies the facts of a sample. A sample that has only the connection leaves the rest as it is
 * known. */
static void fact_take(struct late_fact *fact, const struct sample *sample)
{
	fact->known = true;
	text_fill(&fact->connection, sample->file.connection);
	text_fill(&fact->remote, sample->file.remote);
	text_fill(&fact->waits_on, sample->wait.on);
	text_fill(&fact->waits_onsum, sample->wait.onsum);
	text_fill(&fact->why, sample->wait.why);
	if (sample->wait.on)
		fact->waits_on_pid = sample->wait.pid;
}

/* Appends the sample. */
static void sample_put(struct late_waits *waits, const struct sample *sample,
		       struct exact_note note)
{
	struct late_sample late = {*sample, note, waits->now_us, SLOT_NONE, SLOT_NONE};

	if (sample->wait.open)
		late.slot = fact_slot(waits, wait_key(sample));
	if (sample->stack.names_open)
		late.names = fact_slot(waits, names_key(sample));
	if (waits->first > waits->count / MOVE_PART &&
	    waits->first + waits->count == waits->capacity) {
		memmove(waits->samples, &waits->samples[waits->first],
			waits->count * sizeof(*waits->samples));
		waits->first = 0;
	}
	waits->samples = memory_grow(waits->samples, &waits->capacity,
				     waits->first + waits->count + 1, sizeof(*waits->samples));
	waits->samples[waits->first + waits->count++] = late;
}

/* True if the sample shows a wait. A running thread may have a connection, but waits for
 * nothing. */
static bool shows_wait(const struct sample *sample)
{
	return sample->wait.on || (sample->file.connection && sample->now.state != STATE_ON &&
				   sample->now.state != STATE_RQ);
}

/* Copies from a complete sample the facts that held samples lack. */
static void facts_take(struct late_waits *waits, const struct sample *sample)
{
	const uint64_t *at;

	/* the wait of a running thread is over */
	if (!sample->wait.open && shows_wait(sample) &&
	    (at = index_find(&waits->slots, wait_key(sample))))
		fact_take(&waits->facts[*at - 1], sample);
	if (!sample->stack.names_open && (sample->stack.ufunc || sample->stack.kfunc) &&
	    (at = index_find(&waits->slots, names_key(sample)))) {
		waits->facts[*at - 1].known = true;
		waits->facts[*at - 1].stack = sample->stack;
	}
}

bool late_waits_hold(struct late_waits *waits, const struct sample *sample, struct exact_note note)
{
	if (waits->count)
		facts_take(waits, sample);
	/* values of /proc are valid only until the source's next scan */
	if ((!sample->wait.open && !sample->stack.names_open) || waits->count == LATE_WAITS_MAX ||
	    sample->proc_values)
		return false;
	sample_put(waits, sample, note);
	return true;
}

static void sample_fill(struct sample *sample, const struct late_fact *fact)
{
	text_fill(&sample->file.connection, fact->connection);
	text_fill(&sample->file.remote, fact->remote);
	text_fill(&sample->wait.on, fact->waits_on);
	text_fill(&sample->wait.onsum, fact->waits_onsum);
	text_fill(&sample->wait.why, fact->why);
	if (fact->waits_on_pid != ABSENT)
		sample->wait.pid = fact->waits_on_pid;
}

/* Hands over the oldest sample. */
static void sample_give(struct late_waits *waits, late_callback *take, void *to)
{
	struct late_sample *late = &waits->samples[waits->first];

	if (late->slot != SLOT_NONE && waits->facts[late->slot].known)
		sample_fill(&late->sample, &waits->facts[late->slot]);
	if (late->names != SLOT_NONE && waits->facts[late->names].known)
		late->sample.stack = waits->facts[late->names].stack;
	waits->first++;
	waits->count--;
	take(to, &late->sample, late->note);
}

void late_waits_end(struct late_waits *waits, late_callback *take, void *to)
{
	while (waits->count)
		sample_give(waits, take, to);
	waits->first = waits->fact_count = 0;
	index_clear(&waits->slots);
}

static bool is_open(const struct late_waits *waits, size_t slot)
{
	return slot != SLOT_NONE && !waits->facts[slot].known;
}

/* True if the oldest sample may still get more facts. */
static bool first_waits(const struct late_waits *waits, int64_t until_us)
{
	const struct late_sample *late = &waits->samples[waits->first];

	return late->held_us > until_us &&
	       (is_open(waits, late->slot) || is_open(waits, late->names));
}

static size_t fact_keep(struct late_waits *waits, uint64_t key, const struct late_fact *fact)
{
	size_t slot = fact_slot(waits, key);

	waits->facts[slot] = *fact;
	return slot;
}

/* Drops facts that no held sample uses: rows of some thread may always wait. */
static void facts_drop_others(struct late_waits *waits)
{
	struct late_fact *before = waits->facts;

	waits->facts = NULL;
	waits->fact_count = waits->fact_capacity = 0;
	index_clear(&waits->slots);
	for (size_t i = 0; i < waits->count; i++) {
		struct late_sample *late = &waits->samples[waits->first + i];

		if (late->slot != SLOT_NONE)
			late->slot = fact_keep(waits, wait_key(&late->sample), &before[late->slot]);
		if (late->names != SLOT_NONE)
			late->names =
				fact_keep(waits, names_key(&late->sample), &before[late->names]);
	}
	free(before);
}

void late_waits_pass(struct late_waits *waits, int64_t until_us, late_callback *take, void *to)
{
	while (waits->count && !first_waits(waits, until_us))
		sample_give(waits, take, to);
	if (!waits->count)
		late_waits_end(waits, take, to);
	else if (waits->fact_count > FACTS_MAX)
		facts_drop_others(waits);
}

void late_waits_queue(struct late_waits *waits, const struct sample *sample, late_callback *take,
		      void *to)
{
	const struct exact_note note = EXACT_NOTE_NONE;
	struct sample row = *sample;

	row.proc_values = NULL;
	if (waits->count == LATE_WAITS_MAX)
		sample_give(waits, take, to);
	if (!late_waits_hold(waits, &row, note))
		sample_put(waits, &row, note);
	late_waits_pass(waits, INT64_MIN, take, to);
}

void late_waits_done(struct late_waits *waits)
{
	free(waits->samples);
	free(waits->facts);
	index_clear(&waits->slots);
	*waits = (struct late_waits){0};
}
