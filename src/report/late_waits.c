/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/late_waits.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>

struct late_sample {
	struct sample sample;
	struct exact_note note;
	size_t place; /* of its wait, in facts */
};

/* What is known of a wait. */
struct late_fact {
	bool known;
	const char *connection, *remote, *waits_on, *waits_onsum, *why;
	int64_t waits_on_pid;
};

/* Two samples of one process that wait in the same call for the same file have one; of others those
 * of one wait. */
static uint64_t wait_key(const struct sample *sample)
{
	uint64_t call = hash_u64((uint64_t)sample->syscall_nr + 1);

	if (sample->filename)
		return hash_u64((uint64_t)sample->pid) ^ call ^
		       hash_u64((uintptr_t)sample->filename);
	return hash_u64((uint64_t)sample->tid + (UINT64_C(1) << 32)) ^ call ^
	       hash_u64((uint64_t)(sample->time_us - sample->state_us) / 10000);
}

static size_t fact_place(struct late_waits *waits, const struct sample *sample)
{
	bool added;
	uint64_t *place = index_put(&waits->places, wait_key(sample), &added);

	if (added) {
		waits->facts = memory_grow(waits->facts, &waits->fact_capacity,
					   waits->fact_count + 1, sizeof(*waits->facts));
		waits->facts[waits->fact_count++] = (struct late_fact){0};
		*place = waits->fact_count;
	}
	return *place - 1;
}

static void fact_take(struct late_fact *fact, const struct sample *sample)
{
	*fact = (struct late_fact){
		.known = true,
		.connection = sample->connection,
		.remote = sample->remote,
		.waits_on = sample->waits_on,
		.waits_onsum = sample->waits_onsum,
		.why = sample->why,
		.waits_on_pid = sample->waits_on_pid,
	};
}

bool late_waits_hold(struct late_waits *waits, const struct sample *sample, struct exact_note note)
{
	const uint64_t *at;
	size_t place;

	if (!sample->wait_open) {
		/* the wait of who runs is over */
		if (waits->count && sample->waits_on &&
		    (at = index_find(&waits->places, wait_key(sample))))
			fact_take(&waits->facts[*at - 1], sample);
		return false;
	}
	/* values of /proc are the source's until its next scan */
	if (waits->count == LATE_WAITS_MAX || sample->proc_values)
		return false;
	place = fact_place(waits, sample);
	waits->samples = memory_grow(waits->samples, &waits->capacity, waits->count + 1,
				     sizeof(*waits->samples));
	waits->samples[waits->count++] =
		(struct late_sample){.sample = *sample, .note = note, .place = place};
	return true;
}

static void text_fill(const char **field, const char *known)
{
	if (known)
		*field = known;
}

static void sample_fill(struct sample *sample, const struct late_fact *fact)
{
	text_fill(&sample->connection, fact->connection);
	text_fill(&sample->remote, fact->remote);
	text_fill(&sample->waits_on, fact->waits_on);
	text_fill(&sample->waits_onsum, fact->waits_onsum);
	text_fill(&sample->why, fact->why);
	if (fact->waits_on_pid != ABSENT)
		sample->waits_on_pid = fact->waits_on_pid;
}

void late_waits_end(struct late_waits *waits, late_taker *take, void *to)
{
	for (size_t i = 0; i < waits->count; i++) {
		struct late_sample *late = &waits->samples[i];

		if (waits->facts[late->place].known)
			sample_fill(&late->sample, &waits->facts[late->place]);
		take(to, &late->sample, late->note);
	}
	waits->count = waits->fact_count = 0;
	index_clear(&waits->places);
}

void late_waits_done(struct late_waits *waits)
{
	free(waits->samples);
	free(waits->facts);
	index_clear(&waits->places);
	*waits = (struct late_waits){0};
}
