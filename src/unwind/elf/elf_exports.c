/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_exports.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define CHAIN_MAX 256 /* symbols of one bucket; linkers make a few */
#define NAME_BYTES_MAX 64

/* .gnu.hash, as binutils and all dynamic linkers have it: this head, bloom_words of 64 bits, the
 * number of each bucket's first symbol, and for each symbol from first_symbol on the hash of its
 * name, whose lowest bit ends a bucket's list. */
struct hash_head {
	uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
};

struct exports {
	const struct elf_file *elf;
	struct elf_section hash, symbols, names;
	struct hash_head head;
};

static bool part_take(const struct exports *exports, const struct elf_section *section,
		      uint64_t offset, void *to, size_t bytes)
{
	return offset <= section->bytes && bytes <= section->bytes - offset &&
	       !elf_file_take(exports->elf, section->offset + offset, to, bytes);
}

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Returns the symbol's address if it has that name, or 0. */
static uint64_t symbol_address_of(const struct exports *exports, uint32_t number, const char *name)
{
	size_t bytes = strlen(name) + 1;
	char found[NAME_BYTES_MAX];
	Elf64_Sym symbol;

	return bytes <= sizeof(found) &&
			       part_take(exports, &exports->symbols,
					 (uint64_t)number * sizeof(symbol), &symbol,
					 sizeof(symbol)) &&
			       symbol.st_shndx != SHN_UNDEF &&
			       part_take(exports, &exports->names, symbol.st_name, found, bytes) &&
			       !memcmp(found, name, bytes)
		       ? symbol.st_value
		       : 0;
}

static uint64_t export_find(const struct exports *exports, const char *name)
{
	const struct hash_head *head = &exports->head;
	uint64_t buckets = sizeof(*head) + head->bloom_words * 8ull;
	uint64_t hashes = buckets + head->bucket_count * 4ull, address;
	uint32_t hash = name_hash(name), number, reported;

	if (!part_take(exports, &exports->hash, buckets + hash % head->bucket_count * 4ull, &number,
		       sizeof(number)) ||
	    number < head->first_symbol)
		return 0;
	for (int i = 0; i < CHAIN_MAX; i++, number++) {
		if (!part_take(exports, &exports->hash,
			       hashes + (number - head->first_symbol) * 4ull, &reported,
			       sizeof(reported)))
			return 0;
		address =
			(reported | 1) == (hash | 1) ? symbol_address_of(exports, number, name) : 0;
		if (address || reported & 1)
			return address;
	}
	return 0;
}

unsigned int elf_exports(const struct elf_file *elf, const char *const *names, uint64_t *addresses,
			 unsigned int count)
{
	struct exports exports = {.elf = elf};
	unsigned int found = 0;

	memset(addresses, 0, count * sizeof(*addresses));
	if (elf->narrow || elf_file_section(elf, ".gnu.hash", &exports.hash) ||
	    elf_file_section_at(elf, exports.hash.link, &exports.symbols) ||
	    elf_file_section_at(elf, exports.symbols.link, &exports.names) ||
	    !part_take(&exports, &exports.hash, 0, &exports.head, sizeof(exports.head)) ||
	    !exports.head.bucket_count)
		return 0;
	for (unsigned int i = 0; i < count; i++) {
		addresses[i] = export_find(&exports, names[i]);
		found += addresses[i] != 0;
	}
	return found;
}

static void of_runtime(const struct elf_file *elf, const char *const *names, uint64_t *addresses,
		       unsigned int count, bool whole)
{
	if (elf_exports(elf, names, addresses, count) < count && whole)
		memset(addresses, 0, count * sizeof(*addresses));
}

#define EXPORT_NAME(id, name) [id] = name,
#define EXPORTS_READ(member, exports, count, whole) \
	of_runtime(elf, (const char *const[]){exports(EXPORT_NAME)}, to->member, count, whole);

void runtime_exports_read(const struct elf_file *elf, struct runtime_exports *to)
{
	RUNTIME_EXPORTS(EXPORTS_READ)
}
