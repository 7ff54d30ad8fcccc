/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/history_texts.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct history_name {
	struct history_name *next; /* next name with an equal hash */
	uint64_t hash;
	size_t length;
	size_t users; /* number of chunks that use the name */
	char text[];
};

static struct history_name *name_of_text(const char *text)
{
	return (struct history_name *)((uintptr_t)text - offsetof(struct history_name, text));
}

const char *history_text(struct history_texts *texts, struct history_uses *uses, const char *text)
{
	struct history_name *name;
	uint64_t hash, *chain;
	size_t length;
	bool added;

	if (!text)
		return NULL;
	length = strlen(text);
	hash = hash_bytes(text, length);
	chain = index_put(&texts->by_hash, hash, NULL);
	for (name = (struct history_name *)(uintptr_t)*chain; name; name = name->next)
		if (name->length == length && !memcmp(name->text, text, length))
			break;
	if (!name) {
		name = memory_get(sizeof(*name) + length + 1);
		memcpy(name->text, text, length);
		name->length = length;
		name->hash = hash;
		name->next = (struct history_name *)(uintptr_t)*chain;
		*chain = (uintptr_t)name;
		texts->bytes += sizeof(*name) + length + 1;
	}
	index_put(&uses->seen, (uintptr_t)name->text, &added);
	name->users += added;
	return name->text;
}

static void name_free(struct history_texts *texts, struct history_name *name)
{
	uint64_t *chain = index_find(&texts->by_hash, name->hash);
	struct history_name *first = (struct history_name *)(uintptr_t)*chain;

	if (first == name) {
		*chain = (uintptr_t)name->next;
	} else {
		while (first->next != name)
			first = first->next;
		first->next = name->next;
	}
	if (!*chain)
		index_remove(&texts->by_hash, name->hash);
	texts->bytes -= sizeof(*name) + name->length + 1;
	free(name);
}

void history_uses_drop(struct history_texts *texts, struct history_uses *uses)
{
	uint64_t key, value;
	size_t at = 0;

	while (index_next(&uses->seen, &at, &key, &value)) {
		struct history_name *name = name_of_text((const char *)(uintptr_t)key);

		if (!--name->users)
			name_free(texts, name);
	}
	index_clear(&uses->seen);
}
