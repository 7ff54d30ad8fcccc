/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/index.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct index_slot {
	uint64_t key;
	uint64_t value;
};

#define TAG_LIVE 0x80 /* tag of a used slot, with upper bits of the key's hash; 0: a free slot */

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
	/* like FNV-1a, but a word at a time, where the upper half of a word must reach the lower;
	 * then mixed so that the low bits serve a power-of-two table */
	const unsigned char *p = bytes;
	uint64_t hash = 0xcbf29ce484222325ull ^ length, word;

	for (; length >= sizeof(word); p += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	for (word = 0; length; length--)
		word = word << 8 | *p++;
	return hash_u64(hash ^ word);
}

/* The slot of the key, or the free slot that ends the search for it. */
static size_t slot_of(const struct index *index, uint64_t key)
{
	size_t mask = index->capacity - 1;
	uint64_t hash = hash_u64(key);
	uint8_t tag = (uint8_t)(hash >> 57) | TAG_LIVE;
	size_t at = hash & mask;

	while (index->tags[at] && (index->tags[at] != tag || index->slots[at].key != key))
		at = (at + 1) & mask;
	return at;
}

uint64_t *index_find(const struct index *index, uint64_t key)
{
	size_t at;

	if (!index->used)
		return NULL;
	at = slot_of(index, key);
	return index->tags[at] ? &index->slots[at].value : NULL;
}

static void slot_fill(struct index *index, size_t at, uint64_t key, uint64_t value)
{
	index->slots[at] = (struct index_slot){key, value};
	index->tags[at] = (uint8_t)(hash_u64(key) >> 57) | TAG_LIVE;
}

static void index_grow(struct index *index)
{
	struct index bigger = {.capacity = index->capacity ? index->capacity * 2 : 16,
			       .used = index->used};

	/* one block: the tags follow the slots */
	bigger.slots = memory_get(bigger.capacity * (sizeof(*bigger.slots) + sizeof(*bigger.tags)));
	bigger.tags = (uint8_t *)(bigger.slots + bigger.capacity);
	for (size_t i = 0; i < index->capacity; i++)
		if (index->tags[i])
			slot_fill(&bigger, slot_of(&bigger, index->slots[i].key),
				  index->slots[i].key, index->slots[i].value);
	free(index->slots);
	*index = bigger;
}

uint64_t *index_put(struct index *index, uint64_t key, bool *added)
{
	bool missing;
	size_t at;

	/* at most two thirds are used, so that a search ends soon */
	if ((index->used + 1) * 3 > index->capacity * 2)
		index_grow(index);
	at = slot_of(index, key);
	missing = !index->tags[at];
	if (missing) {
		index->used++;
		slot_fill(index, at, key, 0);
	}
	if (added)
		*added = missing;
	return &index->slots[at].value;
}

bool index_remove(struct index *index, uint64_t key)
{
	size_t mask = index->capacity - 1, hole, at;

	if (!index->used)
		return false;
	hole = slot_of(index, key);
	if (!index->tags[hole])
		return false;
	/* no search may end early at the hole: an entry after it moves up, unless that would be
	 * before the slot where the entry's own search begins */
	for (at = (hole + 1) & mask; index->tags[at]; at = (at + 1) & mask) {
		size_t home = hash_u64(index->slots[at].key) & mask;

		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		index->slots[hole] = index->slots[at];
		index->tags[hole] = index->tags[at];
		hole = at;
	}
	index->tags[hole] = 0;
	index->used--;
	return true;
}

bool index_next(const struct index *index, size_t *at, uint64_t *key, uint64_t *value)
{
	for (; *at < index->capacity; ++*at) {
		if (!index->tags[*at])
			continue;
		*key = index->slots[*at].key;
		*value = index->slots[*at].value;
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

void index_empty(struct index *index)
{
	if (index->used)
		memset(index->tags, 0, index->capacity);
	index->used = 0;
}

void index_add(struct index *index, const struct index *other)
{
	uint64_t key, value;

	for (size_t at = 0; index_next(other, &at, &key, &value);)
		*index_put(index, key, NULL) = value;
}

/* The id's page, or NULL. */
static uint32_t *page_find(struct id_map *map, uint64_t id)
{
	uint64_t *page;

	if (map->page && map->last == id / ID_PAGE)
		return map->page;
	page = index_find(&map->pages, id / ID_PAGE);
	if (!page)
		return NULL;
	map->last = id / ID_PAGE;
	map->page = (uint32_t *)(uintptr_t)*page;
	return map->page;
}

uint32_t id_map_get(struct id_map *map, uint64_t id)
{
	uint32_t *page = page_find(map, id);

	return page ? page[id % ID_PAGE] : 0;
}

static uint32_t *page_make(struct id_map *map, uint64_t id)
{
	map->page = memory_get(ID_PAGE * sizeof(*map->page));
	map->last = id / ID_PAGE;
	*index_put(&map->pages, map->last, NULL) = (uintptr_t)map->page;
	return map->page;
}

static void page_drop_empty(struct id_map *map, uint32_t *page, uint64_t id)
{
	for (size_t i = 0; i < ID_PAGE; i++)
		if (page[i])
			return;
	index_remove(&map->pages, id / ID_PAGE);
	free(page);
	map->page = NULL;
}

void id_map_set(struct id_map *map, uint64_t id, uint32_t number)
{
	uint32_t *page = page_find(map, id);

	if (!page && number)
		page = page_make(map, id);
	if (!page)
		return;
	page[id % ID_PAGE] = number;
	if (!number)
		page_drop_empty(map, page, id);
}

void id_map_clear(struct id_map *map)
{
	uint64_t key, page;

	for (size_t at = 0; index_next(&map->pages, &at, &key, &page);)
		free((void *)(uintptr_t)page);
	index_clear(&map->pages);
	*map = (struct id_map){0};
}

void *keyed_put(struct keyed *keyed, size_t each, uint64_t key, bool *added)
{
	bool is_new;
	uint64_t *slot = index_put(&keyed->slots, key, &is_new);

	if (is_new) {
		keyed->rows = memory_grow(keyed->rows, &keyed->capacity, keyed->count + 1, each);
		memset((char *)keyed->rows + keyed->count * each, 0, each);
		*slot = ++keyed->count;
	}
	if (added)
		*added = is_new;
	return (char *)keyed->rows + (*slot - 1) * each;
}

void *keyed_find(const struct keyed *keyed, size_t each, uint64_t key)
{
	const uint64_t *slot = index_find(&keyed->slots, key);

	return slot ? (char *)keyed->rows + (*slot - 1) * each : NULL;
}

void keyed_empty(struct keyed *keyed)
{
	index_empty(&keyed->slots);
	keyed->count = 0;
}

void keyed_done(struct keyed *keyed)
{
	index_clear(&keyed->slots);
	free(keyed->rows);
	*keyed = (struct keyed){0};
}
