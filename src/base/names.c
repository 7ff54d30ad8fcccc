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

struct name_table {
	struct index by_hash;
	size_t bytes, bytes_max;
};

/* Memory of a string beside its block: overhead of malloc(3), and its share of the index. */
#define NAME_EXTRA_BYTES 56

static _Thread_local struct name_table kept = {.bytes_max = NAMES_LIMIT_BYTES},
				       transient = {.bytes_max = NAMES_TRANSIENT_BYTES},
				       of_threads = {.bytes_max = NAMES_COMMS_BYTES};
static size_t bytes_limit = NAMES_LIMIT_BYTES;
static _Thread_local uint64_t refused, dropped;
static const char full[] = NAMES_FULL;

/* Cache of names of threads by a hash of their bytes: each has one slot. */
#define COMMS_BITS 12
static _Thread_local struct {
	uint64_t words[NAMES_COMM_SIZE / 8];
	const char *name;
} comms[1 << COMMS_BITS];

static const struct name *name_find(const struct name_table *table, const char *text, size_t length,
				    uint64_t hash)
{
	const uint64_t *chain = index_find(&table->by_hash, hash);
	const struct name *name = chain ? (const struct name *)(uintptr_t)*chain : NULL;

	while (name && (name->length != length || memcmp(name->text, text, length) != 0))
		name = name->next;
	return name;
}

static const char *name_add(struct name_table *table, const char *text, size_t length,
			    uint64_t hash)
{
	size_t bytes = sizeof(struct name) + length + 1;
	size_t more = bytes + NAME_EXTRA_BYTES;
	struct name *name;
	uint64_t *chain;

	if (table->bytes + more > table->bytes_max || table->bytes + more > bytes_limit) {
		refused++;
		return full;
	}
	name = memory_get(bytes);
	memcpy(name->text, text, length);
	name->length = length;
	chain = index_put(&table->by_hash, hash, NULL);
	name->next = (struct name *)(uintptr_t)*chain;
	*chain = (uintptr_t)name;
	table->bytes += more;
	return name->text;
}

static inline const char *name_in(struct name_table *table, const char *text, size_t length)
{
	const struct name *name;
	uint64_t hash;

	length = strnlen(text, length);
	hash = hash_bytes(text, length);
	name = name_find(table, text, length, hash);
	if (!name && table == &transient)
		name = name_find(&kept, text, length, hash);
	return name ? name->text : name_add(table, text, length, hash);
}

const char *name_of(const char *text, size_t length)
{
	return name_in(&kept, text, length);
}

const char *name_of_comm(const char comm[NAMES_COMM_SIZE])
{
	uint64_t words[NAMES_COMM_SIZE / 8], hash;
	const char *name;

	memcpy(words, comm, sizeof(words));
	hash = ((words[0] ^ words[1] << 1) * 0x9e3779b97f4a7c15ull) >> (64 - COMMS_BITS);
	if (comms[hash].name && comms[hash].words[0] == words[0] &&
	    comms[hash].words[1] == words[1])
		return comms[hash].name;
	name = name_in(&of_threads, comm, NAMES_COMM_SIZE);
	if (name != full) {
		memcpy(comms[hash].words, words, sizeof(words));
		comms[hash].name = name;
	}
	return name;
}

const char *name_transient(const char *text, size_t length)
{
	return name_in(&transient, text, length);
}

const char *name_of_string(const char *text)
{
	return text ? name_of(text, strlen(text)) : NULL;
}

const char *name_transient_string(const char *text)
{
	return text ? name_transient(text, strlen(text)) : NULL;
}

uint64_t names_refused(void)
{
	return refused;
}

void names_keep_all(void)
{
	transient.bytes_max = NAMES_LIMIT_BYTES;
}

void names_set_limit(size_t bytes)
{
	bytes_limit = bytes;
}

size_t names_transient_bytes(void)
{
	return transient.bytes;
}

static void table_clear(struct name_table *table)
{
	uint64_t key, value;
	size_t at = 0;

	dropped++;
	while (index_next(&table->by_hash, &at, &key, &value)) {
		struct name *name = (struct name *)(uintptr_t)value, *next;

		for (; name; name = next) {
			next = name->next;
			free(name);
		}
	}
	index_clear(&table->by_hash);
	*table = (struct name_table){.bytes_max = table->bytes_max};
}

bool names_dropped_since(uint64_t *count)
{
	bool since = *count != names_dropped();

	*count = names_dropped();
	return since;
}

uint64_t names_dropped(void)
{
	return dropped;
}

void names_transient_clear(void)
{
	table_clear(&transient);
}

size_t names_comms_bytes(void)
{
	return of_threads.bytes;
}

void names_comms_clear(void)
{
	table_clear(&of_threads);
	memset(comms, 0, sizeof(comms));
}

void names_clear(void)
{
	table_clear(&kept);
	table_clear(&transient);
	names_comms_clear();
	refused = 0;
}
