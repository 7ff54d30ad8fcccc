/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/row_hash.h"

#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

#define MULTIPLIER 0x9e3779b97f4a7c15ull

void row_hasher_init(struct row_hasher *hasher, const size_t *fields, size_t count)
{
	*hasher = (struct row_hasher){.field_count = count ? fields[count - 1] + 1 : 0};
	for (size_t i = 0; i < count; i++) {
		struct row_stretch *last = hasher->stretches + hasher->stretch_count - 1;

		if (hasher->stretch_count && last->last + 1u == fields[i])
			last->last = (uint16_t)fields[i];
		else
			hasher->stretches[hasher->stretch_count++] =
				(struct row_stretch){(uint16_t)fields[i], (uint16_t)fields[i]};
	}
	/* getauxval(3): 16 random bytes */
	memcpy(&hasher->begin, (const void *)getauxval(AT_RANDOM), sizeof(hasher->begin));
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

/* Two words at a time, so that the multiplication of one does not wait for that of the other. */
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

struct row_hash row_hash_of(const struct row_hasher *hasher, const char *text, const char *start,
			    const uint16_t *ends)
{
	struct row_hash hash = hasher->begin;

	for (size_t i = 0; i < hasher->stretch_count; i++) {
		const struct row_stretch *stretch = &hasher->stretches[i];
		const char *begin = stretch->first ? text + ends[stretch->first - 1] + 1 : start;

		bytes_add(&hash, begin, (size_t)(text + ends[stretch->last] - begin));
	}
	return hash;
}
