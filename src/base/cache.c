/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cache.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void entry_free(struct cache *cache, struct cache_entry *entry)
{
	if (entry && cache->drop)
		cache->drop(entry);
	free(entry);
}

static struct cache_entry *cache_spare(struct cache *cache)
{
	if (!cache->spare)
		cache->spare = memory_get(cache->entry_bytes);
	else if (cache->drop)
		cache->drop(cache->spare);
	memset(cache->spare, 0, cache->entry_bytes);
	return cache->spare;
}

static struct cache_entry *cache_add(struct cache *cache, uint64_t key)
{
	struct cache_entry *entry = memory_get(cache->entry_bytes);

	cache->entries = memory_grow(cache->entries, &cache->capacity, cache->count + 1,
				     sizeof(*cache->entries));
	cache->entries[cache->count++] = entry;
	id_map_set(&cache->at, key, (uint32_t)cache->count);
	return entry;
}

void *cache_get(struct cache *cache, uint64_t key, int64_t now_ns, bool *added)
{
	uint32_t position = id_map_get(&cache->at, key);
	struct cache_entry *entry;

	*added = !position;
	if (position)
		entry = cache->entries[position - 1];
	else if (cache->count < cache->entries_max)
		entry = cache_add(cache, key);
	else
		entry = cache_spare(cache);
	entry->key = key;
	entry->used_ns = now_ns;
	return entry;
}

void *cache_find(struct cache *cache, uint64_t key)
{
	uint32_t position = id_map_get(&cache->at, key);

	return position ? cache->entries[position - 1] : NULL;
}

void cache_sweep(struct cache *cache, int64_t now_ns, int64_t idle_ns)
{
	for (size_t i = 0; i < cache->count;) {
		struct cache_entry *entry = cache->entries[i];

		if (now_ns - entry->used_ns < idle_ns) {
			i++;
			continue;
		}
		id_map_set(&cache->at, entry->key, 0);
		entry_free(cache, entry);
		cache->entries[i] = cache->entries[--cache->count];
		if (i < cache->count)
			id_map_set(&cache->at, cache->entries[i]->key, (uint32_t)i + 1);
	}
}

void cache_done(struct cache *cache)
{
	for (size_t i = 0; i < cache->count; i++)
		entry_free(cache, cache->entries[i]);
	free(cache->entries);
	entry_free(cache, cache->spare);
	id_map_clear(&cache->at);
	*cache = (struct cache){.entry_bytes = cache->entry_bytes,
				.entries_max = cache->entries_max,
				.drop = cache->drop};
}
