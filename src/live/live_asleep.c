/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_asleep.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct repeat_rest *live_asleep_rest_of(const struct live_asleep *asleep, size_t slot)
{
	return slot < asleep->rest_capacity && asleep->rests[slot].until_ns ? &asleep->rests[slot]
									    : NULL;
}

void live_asleep_rest_end(struct live_asleep *asleep, size_t slot)
{
	struct repeat_rest *rest = live_asleep_rest_of(asleep, slot);

	if (!rest)
		return;
	live_repeat_rest_settle(asleep->repeat, asleep->copies[slot].record.key, rest);
	*rest = (struct repeat_rest){0};
}

void live_asleep_rests_end(struct live_asleep *asleep)
{
	for (size_t i = 0; i < asleep->count && i < asleep->rest_capacity; i++)
		live_asleep_rest_end(asleep, i);
}

void live_asleep_rests_settle(struct live_asleep *asleep)
{
	for (size_t i = 0; i < asleep->count && i < asleep->rest_capacity; i++)
		if (live_asleep_rest_of(asleep, i))
			live_repeat_rest_settle(asleep->repeat, asleep->copies[i].record.key,
						&asleep->rests[i]);
}

void live_asleep_rest(struct live_asleep *asleep, const struct repeated *repeated)
{
	size_t before = asleep->rest_capacity;
	struct repeat_rest rest;
	uint32_t key, slot;

	if (!live_repeat_rest(repeated, &key, &rest))
		return;
	slot = id_map_get(&asleep->slots, key);
	if (!slot)
		return;
	asleep->rests =
		memory_grow(asleep->rests, &asleep->rest_capacity, slot, sizeof(*asleep->rests));
	memset(asleep->rests + before, 0,
	       (asleep->rest_capacity - before) * sizeof(*asleep->rests));
	live_asleep_rest_end(asleep, slot - 1);
	asleep->rests[slot - 1] = rest;
}

/* Moves the last slot's rest to a slot without one. */
static void rest_move(struct live_asleep *asleep, size_t slot, size_t last)
{
	struct repeat_rest *rest = live_asleep_rest_of(asleep, last);

	if (!rest)
		return;
	asleep->rests[slot] = *rest;
	*rest = (struct repeat_rest){0};
}

static void slot_drop(struct live_asleep *asleep, size_t slot)
{
	struct captured *last = &asleep->copies[asleep->count - 1];

	live_asleep_rest_end(asleep, slot);
	rest_move(asleep, slot, --asleep->count);

	id_map_set(&asleep->slots, asleep->copies[slot].record.key, 0);
	if (slot == asleep->count)
		return;
	asleep->copies[slot] = *last;
	id_map_set(&asleep->slots, last->record.key, (uint32_t)slot + 1);
}

void live_asleep_drop(struct live_asleep *asleep, uint32_t key)
{
	uint32_t slot = id_map_get(&asleep->slots, key);

	if (slot)
		slot_drop(asleep, slot - 1);
}

void live_asleep_begin(struct live_asleep *asleep, const struct live_capture *capture)
{
	if (capture->whole) {
		live_asleep_rests_end(asleep);
		asleep->count = 0;
		id_map_clear(&asleep->slots);
	}
	for (size_t i = 0; asleep->count && i < capture->count; i++)
		live_asleep_drop(asleep, capture->threads[i].record.key);
	for (size_t i = 0; asleep->count && i < capture->gone_count; i++)
		live_asleep_drop(asleep, capture->gone[i]);
}

/* Takes over a capture of all threads as it is; those that are awake are left out afterwards. */
static void whole_take(struct live_asleep *asleep, struct live_capture *capture)
{
	const struct live_asleep before = *asleep;

	asleep->copies = capture->threads;
	asleep->capacity = capture->capacity;
	capture->threads = before.copies;
	capture->capacity = before.capacity;
}

bool live_asleep_has(struct live_asleep *asleep, uint32_t key)
{
	return id_map_get(&asleep->slots, key);
}

/* True if the scan that ends has passed the copy. */
static bool passed(struct live_asleep *asleep, size_t slot)
{
	struct repeat_rest *rest = live_asleep_rest_of(asleep, slot);
	bool was_passed = rest && rest->passed;

	if (was_passed)
		rest->passed = false;
	return was_passed;
}

void live_asleep_end(struct live_asleep *asleep, struct live_capture *capture,
		     const struct index *wanted, unsigned int round)
{
	struct captured *copies = capture->threads;
	size_t count = capture->count;

	for (size_t i = asleep->count; wanted && i--;)
		if (!passed(asleep, i) && !index_find(wanted, asleep->copies[i].record.key))
			slot_drop(asleep, i);
	if (capture->whole) {
		whole_take(asleep, capture);
		capture->count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (copies[i].moved || !record_settled(&copies[i].record) ||
		    (wanted && !index_find(wanted, copies[i].record.key)))
			continue;
		asleep->copies = memory_grow(asleep->copies, &asleep->capacity, asleep->count + 1,
					     sizeof(*asleep->copies));
		copies[i].round = round;
		asleep->copies[asleep->count++] = copies[i];
		id_map_set(&asleep->slots, copies[i].record.key, (uint32_t)asleep->count);
	}
}

bool live_asleep_seen(struct live_asleep *asleep, const struct thread_state *record, uint32_t key,
		      unsigned int round, bool *later)
{
	uint32_t slot = id_map_get(&asleep->slots, key);

	if (!slot)
		return false;
	asleep->copies[slot - 1].round = round;
	*later = asleep->copies[slot - 1].record.sched.sequence_done != record->sched.sequence_done;
	return true;
}

void live_asleep_sweep(struct live_asleep *asleep, unsigned int round)
{
	for (size_t i = asleep->count; i--;)
		if (asleep->copies[i].round != round)
			slot_drop(asleep, i);
}

void live_asleep_done(struct live_asleep *asleep)
{
	free(asleep->copies);
	free(asleep->rests);
	id_map_clear(&asleep->slots);
	*asleep = (struct live_asleep){.repeat = asleep->repeat};
}
