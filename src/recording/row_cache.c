/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/row_cache.h"
#include "base/memory.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define ROWS_BITS 15
#define MULTIPLIER 0x9e3779b97f4a7c15ull

/* Fields that follow each other, with what separates them. */
struct stretch {
	size_t first, last;
};

/* 128 bits that stand for the bytes of a row: two rows that are not equal have the same ones in one
 * of 10^19 comparisons. They begin with random bits of the process, so that nobody can choose names
 * or command lines with which a row of theirs passes for another one. Zeros: of no row. */
struct row_hash {
	uint64_t one, other;
};

/* A row; behind it are its values. */
struct cached_row {
	struct row_hash hash;
	uint64_t number; /* see row_cache_number() */
	union value values[];
};

struct row_cache {
	struct stretch stretches[CSV_FIELDS_MAX];
	size_t stretch_count, value_count, stride;
	char *rows; /* 1 << ROWS_BITS, of stride bytes each */
	struct row_hash begin;
	struct row_hash hash;	/* of the row that was looked for last, */
	struct cached_row *row; /* and where its values belong */
};

struct row_cache *row_cache_new(const size_t *fields, size_t count)
{
	struct row_cache *cache = count ? memory_get(sizeof(*cache)) : NULL;

	for (size_t i = 0; i < count; i++) {
		struct stretch *last = cache->stretches + cache->stretch_count - 1;

		if (cache->stretch_count && last->last + 1 == fields[i])
			last->last = fields[i];
		else
			cache->stretches[cache->stretch_count++] =
				(struct stretch){fields[i], fields[i]};
	}
	if (!cache)
		return NULL;
	cache->value_count = count;
	/* getauxval(3): 16 random bytes */
	memcpy(&cache->begin, (const void *)getauxval(AT_RANDOM), sizeof(cache->begin));
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

static inline uint64_t word_of(const char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static inline uint64_t word_add(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * MULTIPLIER;
	return hash ^ hash >> 29;
}

/* Two words at a time, so that the multiplication of one does not wait for that of the other. Bytes
 * behind the last one may be read (CSV_INDEX_AHEAD). */
static inline void bytes_add(struct row_hash *hash, const char *bytes, size_t length)
{
	uint64_t one = hash->one, other = hash->other ^ length;

	for (; length >= 16; bytes += 16, length -= 16) {
		one = word_add(one, word_of(bytes));
		other = word_add(other, word_of(bytes + 8));
	}
	if (length >= 8) {
		one = word_add(one, word_of(bytes));
		bytes += 8;
		length -= 8;
	}
	if (length)
		other = word_add(other, le64toh(word_of(bytes)) & ((1ull << (8 * length)) - 1));
	hash->one = one;
	hash->other = other;
}

static struct row_hash row_hash(const struct row_cache *cache, const struct csv_plain *row)
{
	struct row_hash hash = cache->begin;

	for (size_t i = 0; i < cache->stretch_count; i++) {
		const struct stretch *stretch = &cache->stretches[i];
		const char *begin =
			stretch->first ? row->text + row->ends[stretch->first - 1] + 1 : row->start;

		bytes_add(&hash, begin, (size_t)(row->text + row->ends[stretch->last] - begin));
	}
	return hash;
}

const union value *row_cache_find(struct row_cache *cache, const struct csv_plain *row)
{
	uint64_t at;

	cache->hash = row_hash(cache, row);
	at = (cache->hash.one ^ (cache->hash.other << 32 | cache->hash.other >> 32)) * MULTIPLIER;
	at >>= 64 - ROWS_BITS;
	cache->row = (struct cached_row *)(void *)(cache->rows + at * cache->stride);
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
