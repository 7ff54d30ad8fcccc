/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/idle_keys.h"
#include "kernel/bpf_call.h"

#include <sys/mman.h>

#define VOTES_MOST 8 /* sleeps in another call that a key outlasts */

static size_t slots_bytes(const struct idle_keys *keys)
{
	return keys->count * sizeof(*keys->slots);
}

int idle_keys_init(struct idle_keys *keys, int map, uint32_t count)
{
	*keys = (struct idle_keys){.count = count};
	return map < 0 ? 0 : bpf_call_map_mapped(map, slots_bytes(keys), (void **)&keys->slots);
}

/* A program that runs meanwhile sees the old key, none, or the new one. */
static void key_write(struct work_slot *slot, const struct idle_sleep *sleep)
{
	__atomic_store_n(&slot->begun_boot_ns, 0, __ATOMIC_SEQ_CST);
	slot->argument = sleep->argument & sleep->argument_mask;
	slot->argument_mask = sleep->argument_mask;
	slot->call = sleep->call;
	slot->rank = (__u16)sleep->rank;
	slot->votes = 1;
	/* of the call before, or of the thread before in this slot */
	__atomic_store_n(&slot->idle, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->began_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->begun_boot_ns, sleep->begun_boot_ns, __ATOMIC_RELEASE);
}

void idle_keys_learn(struct idle_keys *keys, const struct idle_sleep *sleep)
{
	struct work_slot *slot;

	if (!keys->slots || sleep->slot >= keys->count || !sleep->begun_boot_ns)
		return;
	slot = &keys->slots[sleep->slot];
	if (slot->begun_boot_ns != sleep->begun_boot_ns || slot->rank < sleep->rank) {
		key_write(slot, sleep);
		return;
	}
	if (slot->call == sleep->call && slot->argument_mask == sleep->argument_mask &&
	    slot->argument == (sleep->argument & sleep->argument_mask)) {
		slot->votes = (__u16)(slot->votes + (slot->votes < VOTES_MOST));
		return;
	}
	if (slot->rank > sleep->rank)
		return;
	if (slot->votes)
		slot->votes--;
	else
		key_write(slot, sleep);
}

bool idle_keys_has_piece(const struct idle_keys *keys, const struct idle_sleep *sleep,
			 uint32_t *call)
{
	const struct work_slot *work = &keys->slots[sleep->slot];

	if (!keys->slots || sleep->slot >= keys->count || !sleep->begun_boot_ns ||
	    __atomic_load_n(&work->begun_boot_ns, __ATOMIC_ACQUIRE) != sleep->begun_boot_ns)
		return false;
	*call = work->call;
	/* the thread may have been woken since it was seen in its idle call */
	if (sleep->call == work->call && (sleep->argument & work->argument_mask) == work->argument)
		return false;
	return !__atomic_load_n(&work->idle, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&work->began_ns, __ATOMIC_RELAXED);
}

void idle_keys_done(struct idle_keys *keys)
{
	if (keys->slots)
		munmap(keys->slots, slots_bytes(keys));
	*keys = (struct idle_keys){0};
}
