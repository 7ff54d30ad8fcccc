/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of a recording that were read lately. Threads do the same things again and again: four rows
 * of five differ from an earlier one only in their times. They are known by a hash of the other
 * bytes, and need neither be split into fields nor read as values.
 */
#ifndef TSNAP_RECORDING_ROW_CACHE_H
#define TSNAP_RECORDING_ROW_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/csv_reader.h"
#include "sample/column.h"

struct row_cache;

/* Makes a cache of the values of some fields, numbered from 0 in ascending order. NULL: of none, or
 * there is no memory for it. */
struct row_cache *row_cache_new(const size_t *fields, size_t count);
void row_cache_free(struct row_cache *cache); /* NULL is fine */
/* What tells its rows apart; valid as long as the cache. */
const struct row_hasher *row_cache_hasher(const struct row_cache *cache);
/* Has the CPU read the row with that hash, if it is there, and what leads to a later row; NULL:
 * none. */
void row_cache_prefetch(const struct row_cache *cache, const struct row_hash *sooner,
			const struct row_hash *later);
/* The values of an earlier row that has the same bytes in all these fields; valid until the next
 * row_cache_put(). NULL: there is none. */
const union value *row_cache_find(struct row_cache *cache, const struct csv_plain *row);
/* Keeps the values of the row that row_cache_find() was called for last. */
void row_cache_put(struct row_cache *cache, const union value *values);
/* A number for these values of the row, which no others have, in any cache; 0: they are used up. */
uint32_t row_cache_number(const struct row_cache *cache);

#endif
