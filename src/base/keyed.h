/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows that are found by a 64-bit key, and walked in the order in which they were added. Zeroed is
 * empty and valid. Not thread safe.
 */
#ifndef TSNAP_BASE_KEYED_H
#define TSNAP_BASE_KEYED_H

#include "base/index.h"

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
