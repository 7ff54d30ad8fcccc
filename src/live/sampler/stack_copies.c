/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/stack_copies.h"
#include "base/memory.h"

#include <stdlib.h>

void stack_copies_empty(struct stack_copies *copies)
{
	index_empty(&copies->at);
	copies->count = copies->used = 0;
}

void stack_copies_done(struct stack_copies *copies)
{
	free(copies->copies);
	free(copies->bytes);
	index_clear(&copies->at);
	*copies = (struct stack_copies){0};
}

size_t stack_copies_bytes(const struct stack_copies *copies)
{
	return copies->capacity * sizeof(*copies->copies) + copies->bytes_capacity;
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
	copies->copies = memory_grow(copies->copies, &copies->capacity, copies->count + 1,
				     sizeof(*copies->copies));
	*index_put(&copies->at, copy->tid, NULL) = copies->count;
	copies->copies[copies->count++] = *copy;
}

const struct stack_copy *stack_copies_find(const struct stack_copies *copies, uint32_t tid,
					   uint64_t sequence)
{
	const uint64_t *at = index_find(&copies->at, tid);

	return at && copies->copies[*at].sequence == sequence ? &copies->copies[*at] : NULL;
}
