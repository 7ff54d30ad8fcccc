/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/keyed.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

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
