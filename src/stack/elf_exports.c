/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/elf_exports.h"
#include "base/memory.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES_MAX (64u << 20) /* of symbols, and of names */
#define PIECE_SYMBOLS 1024

struct exports {
	const char *const *names;
	uint64_t *addresses;
	unsigned int count, found;
	char *text; /* all names of the file, NUL-terminated */
	uint64_t text_bytes;
};

static void symbol_take(struct exports *exports, const Elf64_Sym *symbol)
{
	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
	    symbol->st_name >= exports->text_bytes)
		return;
	for (unsigned int i = 0; i < exports->count; i++)
		if (!exports->addresses[i] &&
		    !strcmp(exports->text + symbol->st_name, exports->names[i])) {
			exports->addresses[i] = symbol->st_value;
			exports->found++;
		}
}

static void symbols_take(struct exports *exports, const struct elf_file *elf,
			 const struct elf_section *section)
{
	uint64_t count = section->bytes / sizeof(Elf64_Sym);
	Elf64_Sym symbols[PIECE_SYMBOLS];

	for (uint64_t at = 0; at < count && exports->found < exports->count; at += PIECE_SYMBOLS) {
		uint64_t n = count - at < PIECE_SYMBOLS ? count - at : PIECE_SYMBOLS;

		if (elf_file_take(elf, section->offset + at * sizeof(Elf64_Sym), symbols,
				  n * sizeof(Elf64_Sym)))
			return;
		for (uint64_t i = 0; i < n; i++)
			symbol_take(exports, &symbols[i]);
	}
}

unsigned int elf_exports(const struct elf_file *elf, const char *const *names, uint64_t *addresses,
			 unsigned int count)
{
	struct exports exports = {.names = names, .addresses = addresses, .count = count};
	struct elf_section section, text;

	memset(addresses, 0, count * sizeof(*addresses));
	if (elf->narrow || elf_file_section(elf, ".dynsym", &section) ||
	    section.bytes > TABLE_BYTES_MAX || elf_file_section_at(elf, section.link, &text) ||
	    text.bytes > TABLE_BYTES_MAX)
		return 0;
	exports.text = memory_get(text.bytes + 1);
	exports.text_bytes = text.bytes;
	if (!elf_file_take(elf, text.offset, exports.text, text.bytes))
		symbols_take(&exports, elf, &section);
	free(exports.text);
	return exports.found;
}
