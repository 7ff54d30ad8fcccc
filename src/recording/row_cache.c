/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/row_cache.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROWS_MAX ((size_t)1 << 15) /* report/group_split.c has as many places, by their numbers */
#define SLOTS_BITS \
	17 /* most rows have a slot of their own, so that two seldom drive each other out */
#define MULTIPLIER 0x9e3779b97f4a7c15ull
#define LINE_BYTES 64 /* of the CPU's caches */

/* A row; behind it are its values. */
struct cached_row {
	struct row_hash hash;
	uint64_t number; /* see row_cache_number() */
	size_t slot;	 /* that leads here */
	union value values[];
};

struct row_cache {
	struct row_hasher hasher;
	size_t value_count, stride;
	char *rows;	 /* ROWS_MAX, of stride bytes each; the oldest one is replaced */
	size_t next;	 /* that will be */
	uint32_t *slots; /* behind the rows: index of a row by its hash, plus one; it may have been
			    replaced */
	struct row_hash hash;	/* of the row that was looked for last, */
	size_t slot;		/* where it belongs, */
	struct cached_row *row; /* and where it is */
};

static size_t bytes_of(const struct row_cache *cache)
{
	return cache->stride * ROWS_MAX + (sizeof(*cache->slots) << SLOTS_BITS);
}

struct row_cache *row_cache_new(const size_t *fields, size_t count)
{
	struct row_cache *cache = count ? memory_get(sizeof(*cache)) : NULL;

	if (!cache)
		return NULL;
	row_hasher_init(&cache->hasher, fields, count);
	cache->value_count = count;
	cache->stride = sizeof(struct cached_row) + count * sizeof(union value);
	/* pages that no row reaches take no memory, and need not be cleared */
	cache->rows = mmap(NULL, bytes_of(cache), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cache->rows == MAP_FAILED) {
		free(cache);
		return NULL;
	}
	cache->slots = (uint32_t *)(void *)(cache->rows + cache->stride * ROWS_MAX);
	return cache;
}

void row_cache_free(struct row_cache *cache)
{
	if (!cache)
		return;
	munmap(cache->rows, bytes_of(cache));
	free(cache);
}

const struct row_hasher *row_cache_hasher(const struct row_cache *cache)
{
	return &cache->hasher;
}

/* The first of the two slots for a hash; the other one is its neighbour. */
static size_t slot_of(const struct row_hash *hash)
{
	return ((hash->one ^ (hash->other << 32 | hash->other >> 32)) * MULTIPLIER) >>
	       (64 - SLOTS_BITS);
}

/* The row that the slot leads to; NULL: none, or another one has replaced it. */
static struct cached_row *row_at(const struct row_cache *cache, size_t slot)
{
	uint32_t at = cache->slots[slot];
	struct cached_row *row =
		at ? (struct cached_row *)(void *)(cache->rows + (at - 1) * cache->stride) : NULL;

	return row && row->slot == slot ? row : NULL;
}

void row_cache_prefetch(const struct row_cache *cache, const struct row_hash *sooner,
			const struct row_hash *later)
{
	uint32_t at = sooner ? cache->slots[slot_of(sooner)] : 0;
	const char *row = at ? cache->rows + (at - 1) * cache->stride : NULL;

	for (size_t i = 0; row && i < cache->stride; i += LINE_BYTES)
		__builtin_prefetch(row + i);
	if (later)
		__builtin_prefetch(&cache->slots[slot_of(later)]);
}

const union value *row_cache_find(struct row_cache *cache, const struct csv_plain *row)
{
	struct cached_row *both[2];
	size_t first;

	cache->hash = row->hash ? *row->hash
				: row_hash_of(&cache->hasher, row->text, row->start, row->ends);
	first = slot_of(&cache->hash);
	for (size_t i = 0; i < 2; i++) {
		both[i] = row_at(cache, first ^ i);
		if (!both[i] || both[i]->hash.one != cache->hash.one ||
		    both[i]->hash.other != cache->hash.other)
			continue;
		cache->row = both[i];
		return cache->row->values;
	}
	cache->slot =
		both[0] && (!both[1] || both[1]->number < both[0]->number) ? first ^ 1 : first;
	return NULL;
}

void row_cache_put(struct row_cache *cache, const union value *values)
{
	static uint64_t last;

	cache->row = (struct cached_row *)(void *)(cache->rows + cache->next * cache->stride);
	cache->row->hash = cache->hash;
	cache->row->number = ++last;
	cache->row->slot = cache->slot;
	memcpy(cache->row->values, values, cache->value_count * sizeof(*values));
	cache->slots[cache->slot] = (uint32_t)cache->next + 1;
	cache->next = (cache->next + 1) % ROWS_MAX;
}

uint32_t row_cache_number(const struct row_cache *cache)
{
	return cache->row->number <= UINT32_MAX ? (uint32_t)cache->row->number : 0;
}
