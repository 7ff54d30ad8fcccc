/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/index.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum slot_use { SLOT_FREE, SLOT_LIVE, SLOT_REMOVED };

struct index_slot {
	uint64_t key;
	uint64_t value;
	enum slot_use use;
};

uint64_t hash_u64(uint64_t key)
{
	/* the finalizer of splitmix64 */
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9ull;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebull;
	return key ^ key >> 31;
}

uint64_t hash_bytes(const void *bytes, size_t length)
{
	/* FNV-1a, then mixed so that the low bits serve a power-of-two table */
	const unsigned char *p = bytes;
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ull;
	return hash_u64(hash);
}

static struct index_slot *slot_of(const struct index *index, uint64_t key)
{
	size_t mask = index->capacity - 1;
	size_t at = hash_u64(key) & mask;
	struct index_slot *removed = NULL;

	for (;; at = (at + 1) & mask) {
		struct index_slot *slot = &index->slots[at];

		if (slot->use == SLOT_FREE)
			return removed ? removed : slot;
		if (slot->use == SLOT_REMOVED && !removed)
			removed = slot;
		if (slot->use == SLOT_LIVE && slot->key == key)
			return slot;
	}
}

uint64_t *index_find(const struct index *index, uint64_t key)
{
	struct index_slot *slot;

	if (!index->used)
		return NULL;
	slot = slot_of(index, key);
	return slot->use == SLOT_LIVE ? &slot->value : NULL;
}

static void index_grow(struct index *index)
{
	struct index bigger = {0};

	bigger.capacity = 16;
	while (bigger.capacity < index->used * 4)
		bigger.capacity *= 2;
	bigger.slots = memory_get(bigger.capacity * sizeof(*bigger.slots));
	for (size_t i = 0; i < index->capacity; i++)
		if (index->slots[i].use == SLOT_LIVE)
			*slot_of(&bigger, index->slots[i].key) = index->slots[i];
	bigger.used = bigger.filled = index->used;
	free(index->slots);
	*index = bigger;
}

uint64_t *index_put(struct index *index, uint64_t key, bool *added)
{
	struct index_slot *slot;
	bool missing;

	/* at most two thirds filled, removed slots counted, so that a search ends */
	if ((index->filled + 1) * 3 > index->capacity * 2)
		index_grow(index);
	slot = slot_of(index, key);
	missing = slot->use != SLOT_LIVE;
	if (missing) {
		index->filled += slot->use == SLOT_FREE;
		index->used++;
		*slot = (struct index_slot){key, 0, SLOT_LIVE};
	}
	if (added)
		*added = missing;
	return &slot->value;
}

bool index_remove(struct index *index, uint64_t key)
{
	struct index_slot *slot;

	if (!index->used)
		return false;
	slot = slot_of(index, key);
	if (slot->use != SLOT_LIVE)
		return false;
	slot->use = SLOT_REMOVED;
	index->used--;
	return true;
}

bool index_next(const struct index *index, size_t *at, uint64_t *key, uint64_t *value)
{
	for (; *at < index->capacity; ++*at) {
		const struct index_slot *slot = &index->slots[*at];

		if (slot->use != SLOT_LIVE)
			continue;
		*key = slot->key;
		*value = slot->value;
		++*at;
		return true;
	}
	return false;
}

void index_clear(struct index *index)
{
	free(index->slots);
	*index = (struct index){0};
}
