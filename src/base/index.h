/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash index from a 64-bit key to a 64-bit value, open addressing; for tids, uids and hashes.
 * Zeroed is empty and valid. Not thread safe.
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

#endif
