/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/names.h"
#include "base/index.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* One block per string; strings whose hashes are equal are chained. */
struct name {
	struct name *next;
	size_t length;
	char text[];
};

static struct index by_hash;
static const struct name *last; /* asked for: threads of a process often have one name */
static size_t bytes_used, bytes_limit = NAMES_LIMIT_BYTES;
static uint64_t refused;
static const char full[] = NAMES_FULL;

const char *name_of(const char *text, size_t length)
{
	uint64_t *chain, hash;
	struct name *name;

	length = strnlen(text, length);
	if (last && last->length == length && !memcmp(last->text, text, length))
		return last->text;
	hash = hash_bytes(text, length);
	chain = index_find(&by_hash, hash);
	for (name = chain ? (struct name *)(uintptr_t)*chain : NULL; name; name = name->next)
		if (name->length == length && !memcmp(name->text, text, length))
			return (last = name)->text;
	if (bytes_used + sizeof(*name) + length + 1 > bytes_limit) {
		refused++;
		return full;
	}
	name = memory_get(sizeof(*name) + length + 1);
	memcpy(name->text, text, length);
	name->length = length;
	chain = index_put(&by_hash, hash, NULL);
	name->next = (struct name *)(uintptr_t)*chain;
	*chain = (uintptr_t)name;
	bytes_used += sizeof(*name) + length + 1;
	return name->text;
}

const char *name_of_string(const char *text)
{
	return text ? name_of(text, strlen(text)) : NULL;
}

uint64_t names_refused(void)
{
	return refused;
}

void names_set_limit(size_t bytes)
{
	bytes_limit = bytes;
}

void names_clear(void)
{
	uint64_t key, value;
	size_t at = 0;

	while (index_next(&by_hash, &at, &key, &value)) {
		struct name *name = (struct name *)(uintptr_t)value, *next;

		for (; name; name = next) {
			next = name->next;
			free(name);
		}
	}
	index_clear(&by_hash);
	last = NULL;
	bytes_used = 0;
	refused = 0;
}
