/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/go_program.h"
#include "base/memory.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES_MAX (64u << 20)
#define SYMBOLS_MAX (4u << 20)
#define PIECE_SYMBOLS 2048
#define STRING_BYTES 16 /* size of a string of Go: an address and a length */

/* .go.buildinfo: a mark, the bytes of a word, flags; since Go 1.18 texts follow the 32 bytes, each
 * after its length. */
#define MARK "\xff Go buildinf:"
#define MARK_BYTES 14
#define FLAGS_AT 15
#define FLAG_TEXTS 2
#define TEXTS_AT 32

/* Largest length of the first text that takes one byte. */
#define LENGTH_MAX 0x7f

static void version_read(struct go_program *program, const struct elf_file *elf,
			 const struct elf_section *section)
{
	unsigned char head[TEXTS_AT + 1];
	size_t length;

	if (section->bytes < sizeof(head) ||
	    elf_file_take(elf, section->offset, head, sizeof(head)) ||
	    memcmp(head, MARK, MARK_BYTES) || !(head[FLAGS_AT] & FLAG_TEXTS))
		return;
	length = head[TEXTS_AT];
	if (length > LENGTH_MAX || length >= sizeof(program->version) ||
	    length > section->bytes - sizeof(head) ||
	    elf_file_take(elf, section->offset + sizeof(head), program->version, length))
		length = 0;
	program->version[length] = '\0';
}

static void symbol_take(struct go_program *program, const Elf64_Sym *symbol, const char *name)
{
	if (!strcmp(name, "runtime.allgptr")) {
		program->list = symbol->st_value;
	} else if (!strcmp(name, "runtime.allglen")) {
		program->count = symbol->st_value;
	} else if (!strcmp(name, "runtime.waitReasonStrings")) {
		program->reasons = symbol->st_value;
		program->reason_count = symbol->st_size / STRING_BYTES;
	}
}

static void symbols_read(struct go_program *program, const struct elf_file *elf)
{
	struct elf_section symbols, strings;
	Elf64_Sym *piece;
	uint64_t count;
	char *names;

	if (elf->narrow || elf_file_section(elf, ".symtab", &symbols) ||
	    elf_file_section_at(elf, symbols.link, &strings) || !strings.bytes ||
	    strings.bytes > NAMES_BYTES_MAX)
		return;
	count = symbols.bytes / sizeof(*piece);
	count = count < SYMBOLS_MAX ? count : SYMBOLS_MAX;
	program->has_symbols = count > 0;
	piece = memory_get(PIECE_SYMBOLS * sizeof(*piece));
	names = memory_get(strings.bytes + 1);
	if (!elf_file_take(elf, strings.offset, names, strings.bytes))
		names[strings.bytes] = '\0';
	else
		count = 0;
	for (uint64_t at = 0; at < count; at += PIECE_SYMBOLS) {
		uint64_t n = count - at < PIECE_SYMBOLS ? count - at : PIECE_SYMBOLS;

		if (elf_file_take(elf, symbols.offset + at * sizeof(*piece), piece,
				  n * sizeof(*piece)))
			break;
		for (uint64_t i = 0; i < n; i++)
			if (piece[i].st_shndx != SHN_UNDEF && piece[i].st_name < strings.bytes)
				symbol_take(program, &piece[i], names + piece[i].st_name);
	}
	free(names);
	free(piece);
}

int go_program_read(struct go_program *program, const struct elf_file *elf)
{
	struct elf_section section;

	memset(program, 0, sizeof(*program));
	if (elf_file_section(elf, ".go.buildinfo", &section))
		return -ENOENT;
	version_read(program, elf, &section);
	symbols_read(program, elf);
	return 0;
}
