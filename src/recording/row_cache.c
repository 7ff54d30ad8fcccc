/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/row_cache.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROWS_BITS 15
#define MULTIPLIER 0x9e3779b97f4a7c15ull
#define LINE_BYTES 64 /* of the CPU's caches */

/* A row; behind it are its values. */
struct cached_row {
	struct row_hash hash;
	uint64_t number; /* see row_cache_number() */
	union value values[];
};

struct row_cache {
	struct row_hasher hasher;
	size_t value_count, stride;
	char *rows;		/* 1 << ROWS_BITS, of stride bytes each */
	struct row_hash hash;	/* of the row that was looked for last, */
	struct cached_row *row; /* and where its values belong */
};

struct row_cache *row_cache_new(const size_t *fields, size_t count)
{
	struct row_cache *cache = count ? memory_get(sizeof(*cache)) : NULL;

	if (!cache)
		return NULL;
	row_hasher_init(&cache->hasher, fields, count);
	cache->value_count = count;
	cache->stride = sizeof(struct cached_row) + count * sizeof(union value);
	/* pages that no row reaches take no memory, and need not be cleared */
	cache->rows = mmap(NULL, cache->stride << ROWS_BITS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cache->rows != MAP_FAILED)
		return cache;
	free(cache);
	return NULL;
}

void row_cache_free(struct row_cache *cache)
{
	if (!cache)
		return;
	munmap(cache->rows, cache->stride << ROWS_BITS);
	free(cache);
}

const struct row_hasher *row_cache_hasher(const struct row_cache *cache)
{
	return &cache->hasher;
}

static struct cached_row *row_of(const struct row_cache *cache, const struct row_hash *hash)
{
	uint64_t at = (hash->one ^ (hash->other << 32 | hash->other >> 32)) * MULTIPLIER;

	at >>= 64 - ROWS_BITS;
	return (struct cached_row *)(void *)(cache->rows + at * cache->stride);
}

void row_cache_prefetch(const struct row_cache *cache, const struct row_hash *hash)
{
	const char *row = (const char *)row_of(cache, hash);

	for (size_t at = 0; at < cache->stride; at += LINE_BYTES)
		__builtin_prefetch(row + at);
}

const union value *row_cache_find(struct row_cache *cache, const struct csv_plain *row)
{
	cache->hash = row->hash ? *row->hash
				: row_hash_of(&cache->hasher, row->text, row->start, row->ends);
	cache->row = row_of(cache, &cache->hash);
	return cache->row->hash.one == cache->hash.one &&
			       cache->row->hash.other == cache->hash.other
		       ? cache->row->values
		       : NULL;
}

void row_cache_put(struct row_cache *cache, const union value *values)
{
	static uint64_t last;

	cache->row->hash = cache->hash;
	cache->row->number = ++last;
	memcpy(cache->row->values, values, cache->value_count * sizeof(*values));
}

uint32_t row_cache_number(const struct row_cache *cache)
{
	return cache->row->number <= UINT32_MAX ? (uint32_t)cache->row->number : 0;
}
