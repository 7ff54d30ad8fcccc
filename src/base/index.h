/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash index from a 64-bit key to a 64-bit value, open addressing, for tids, uids and hashes; and
 * what is made of it: a map from ids to numbers, and rows that are found by a key. Each is empty
 * and valid if it is zeroed. Not thread safe.
 */
#ifndef TSNAP_BASE_INDEX_H
#define TSNAP_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_slot;

struct index {
	struct index_slot *slots;
	uint8_t *tags;	 /* one per slot: unused, or some bits of the key's hash */
	size_t capacity; /* zero or a power of two */
	size_t used;
};

/* Address of the key's value, or NULL. Valid until the next insertion or removal. */
uint64_t *index_find(const struct index *index, uint64_t key);
/* Address of the key's value, which is added as 0 if missing: *added, which may be NULL. */
uint64_t *index_put(struct index *index, uint64_t key, bool *added);
bool index_remove(struct index *index, uint64_t key);
/* Walks all entries: *at starts at 0; false at the end. Do not change the index meanwhile. */
bool index_next(const struct index *index, size_t *at, uint64_t *key, uint64_t *value);
void index_clear(struct index *index);
void index_empty(struct index *index); /* removes all keys, keeps the memory */
/* Adds all keys of the other index, with their values. */
void index_add(struct index *index, const struct index *other);

uint64_t hash_u64(uint64_t key);
uint64_t hash_bytes(const void *bytes, size_t length);

/* A map from ids to small numbers, for ids that come in runs, as the kernel gives them to threads.
 * Neighbouring ids share a page, which is a cache line: lookups of them in turn need only one
 * search. */
#define ID_PAGE 16u

struct id_map {
	struct index pages; /* id / ID_PAGE to its page of numbers */
	uint64_t last;	    /* id / ID_PAGE of the page that was found last */
	uint32_t *page;	    /* page that was found last; NULL: none */
};

/* The number of the id; 0: there is none. */
uint32_t id_map_get(struct id_map *map, uint64_t id);
/* Sets the number of the id; 0 removes the id. */
void id_map_set(struct id_map *map, uint64_t id, uint32_t number);
void id_map_clear(struct id_map *map);

/* Rows that are found by a 64-bit key, and walked in the order in which they were added. */
struct keyed {
	struct index slots; /* key to slot, plus one */
	void *rows;	    /* an array of the user's type, of `each` bytes in all calls */
	size_t count, capacity;
};

/* The key's row, which is added as zeros if missing: *added, which may be NULL. Valid until the
 * next row is added. */
void *keyed_put(struct keyed *keyed, size_t each, uint64_t key, bool *added);
void *keyed_find(const struct keyed *keyed, size_t each, uint64_t key); /* NULL: there is none */
void keyed_empty(struct keyed *keyed);					/* keeps the memory */
void keyed_done(struct keyed *keyed);					/* empty and valid */

#endif
