/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/stack_copies.h"
#include "base/memory.h"

#include <stdlib.h>

void stack_copies_empty(struct stack_copies *copies)
{
	keyed_empty(&copies->copies);
	copies->used = 0;
}

void stack_copies_done(struct stack_copies *copies)
{
	keyed_done(&copies->copies);
	free(copies->bytes);
	*copies = (struct stack_copies){0};
}

size_t stack_copies_bytes(const struct stack_copies *copies)
{
	return copies->copies.capacity * sizeof(struct stack_copy) + copies->bytes_capacity;
}

char *stack_copies_reserve(struct stack_copies *copies, size_t bytes)
{
	copies->bytes =
		memory_grow(copies->bytes, &copies->bytes_capacity, copies->used + bytes, 1);
	return copies->bytes + copies->used;
}

size_t stack_copies_use(struct stack_copies *copies, size_t bytes)
{
	size_t at = copies->used;

	copies->used += (bytes + 7) & ~(size_t)7;
	return at;
}

void stack_copies_add(struct stack_copies *copies, const struct stack_copy *copy)
{
	*(struct stack_copy *)keyed_put(&copies->copies, sizeof(*copy), copy->tid, NULL) = *copy;
}

const struct stack_copy *stack_copies_find(const struct stack_copies *copies, uint32_t tid,
					   uint64_t sequence)
{
	const struct stack_copy *copy = keyed_find(&copies->copies, sizeof(*copy), tid);

	return copy && copy->sequence == sequence ? copy : NULL;
}
