/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bounded set of entries by a 64-bit key, for caches.
 *
 * The entry's struct begins with a struct cache_entry. Entries stay at their address until
 * cache_sweep() or cache_done(). A cache needs entry_bytes and entries_max, all else zeroed but
 * drop, which, if set, is called before an entry's memory is freed or reused.
 */
#ifndef TSNAP_BASE_CACHE_H
#define TSNAP_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

struct cache_entry {
	uint64_t key;
	int64_t used_ns; /* time of the last cache_get() */
};

struct cache {
	size_t entry_bytes, entries_max;
	void (*drop)(void *entry);
	struct id_map at; /* key to position in entries, plus one */
	struct cache_entry **entries;
	size_t count, capacity;
	struct cache_entry *spare;
};

/* The entry of key, added zeroed if it is missing (*added). A full cache keeps its entries and
 * returns a zeroed spare entry instead, valid until the next cache_get(): slower, never wrong.
 * Never NULL. */
void *cache_get(struct cache *cache, uint64_t key, int64_t now_ns, bool *added);

/* The entry of key, or NULL. Does not count as a use of the entry. */
void *cache_find(struct cache *cache, uint64_t key);

/* Frees the entries that have not been used since now_ns - idle_ns. */
void cache_sweep(struct cache *cache, int64_t now_ns, int64_t idle_ns);
void cache_done(struct cache *cache);

#endif
