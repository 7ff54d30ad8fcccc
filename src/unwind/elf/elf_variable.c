/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_variable.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MAX 100000

/* Types of relocations of thread-local variables (psABI of each machine). */
static const struct slot_types {
	uint16_t machine;
	uint32_t module, place, offset, descriptor;
} slot_types[] = {
	{EM_X86_64, R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC},
	{EM_AARCH64, R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_DTPREL, R_AARCH64_TLS_TPREL,
	 R_AARCH64_TLSDESC},
};

struct search {
	const char *name;
	Elf64_Sym symbol;
	bool found;
};

static bool symbol_is_variable(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF &&
	       (type == STT_TLS ||
		((type == STT_OBJECT || type == STT_NOTYPE) && symbol->st_value));
}

/* Symbols with a version have it in their name in .symtab: environ@@GLIBC_2.2.5. */
static void symbol_take(void *of, const Elf64_Sym *symbol, const char *name)
{
	struct search *search = of;
	size_t length = name ? strcspn(name, "@") : 0;

	if (!name || search->found || !symbol_is_variable(symbol) ||
	    length != strlen(search->name) || memcmp(name, search->name, length) != 0)
		return;
	search->symbol = *symbol;
	search->found = true;
}

/* Finds where the program's block is (variants I and II); it begins where the alignment of its
 * segment allows, and on x86-64 ends at the thread pointer. */
static int64_t block_place(const struct elf_file *elf)
{
	const struct elf_segment *tls = &elf->tls;
	uint64_t mask = elf->tls_align ? elf->tls_align - 1 : 0;

	if (elf->machine == EM_AARCH64)
		return (int64_t)(16 + ((tls->address - 16) & mask));
	return -(int64_t)(tls->memory_bytes + ((0 - tls->address - tls->memory_bytes) & mask));
}

/* Takes a relocation if it is of the variable, or of none by name: that one is of the block, or of
 * a variable that the library does not export, at addend. */
static void slot_take(const struct elf_file *elf, const struct elf_section *symbols,
		      const struct slot_types *types, const Elf64_Rela *row,
		      struct elf_variable *variable)
{
	uint32_t type = (uint32_t)ELF64_R_TYPE(row->r_info);
	uint64_t number = ELF64_R_SYM(row->r_info);
	Elf64_Sym symbol = {0};
	enum variable_slot kind = type == types->offset	      ? SLOT_OFFSET
				  : type == types->descriptor ? SLOT_DESCRIPTOR
				  : type != types->module     ? SLOT_NONE
				  : number		      ? SLOT_PAIR
							      : SLOT_MODULE;

	if (!kind || variable->slot_kind == SLOT_OFFSET ||
	    (variable->slot_kind && kind != SLOT_OFFSET))
		return;
	if (number) {
		if (number >= symbols->bytes / sizeof(symbol) ||
		    elf_file_take(elf, symbols->offset + number * sizeof(symbol), &symbol,
				  sizeof(symbol)) ||
		    symbol.st_shndx == SHN_UNDEF || symbol.st_value != variable->address)
			return;
	}
	variable->slot_kind = kind;
	variable->slot = row->r_offset;
	variable->from_slot =
		(int64_t)(variable->address - symbol.st_value - (uint64_t)row->r_addend);
}

static void slot_find(const struct elf_file *elf, struct elf_variable *variable)
{
	const struct slot_types *types = slot_types;
	const struct slot_types *end = slot_types + sizeof(slot_types) / sizeof(slot_types[0]);
	struct elf_section section, symbols;

	while (types < end && types->machine != elf->machine)
		types++;
	if (types == end)
		return;
	for (uint32_t i = 0; i < elf->section_count; i++) {
		struct elf_rows rows = {.elf = elf, .each = sizeof(Elf64_Rela)};
		const void *row;

		if (elf_file_section_at(elf, i, &section) || section.type != SHT_RELA ||
		    elf_file_section_at(elf, section.link, &symbols))
			continue;
		rows.offset = section.offset;
		rows.left = section.bytes / rows.each;
		while ((row = elf_rows_next(&rows))) {
			Elf64_Rela relocation;

			memcpy(&relocation, row, sizeof(relocation));
			slot_take(elf, &symbols, types, &relocation, variable);
		}
	}
}

void elf_variable_find(const struct elf_file *elf, const char *name, bool exported,
		       struct elf_variable *variable)
{
	struct search search = {.name = name};
	struct elf_section names;

	*variable = (struct elf_variable){.found = false};
	if (elf->narrow)
		return;
	elf_file_symbols(elf, ".dynsym", symbol_take, &search, &names);
	if (!search.found && !exported)
		elf_file_symbols(elf, ".symtab", symbol_take, &search, &names);
	if (!search.found)
		return;
	variable->found = true;
	variable->address = search.symbol.st_value;
	variable->bytes = search.symbol.st_size;
	variable->thread_local_storage = ELF64_ST_TYPE(search.symbol.st_info) == STT_TLS;
	if (!variable->thread_local_storage)
		return;
	variable->block_at = block_place(elf);
	slot_find(elf, variable);
}

struct candidates {
	char **names;
	size_t count, capacity;
};

static void candidate_take(void *of, const Elf64_Sym *symbol, const char *name)
{
	struct candidates *candidates = of;

	if (!name || !*name || !symbol_is_variable(symbol) || candidates->count == CANDIDATES_MAX)
		return;
	candidates->names = memory_grow(candidates->names, &candidates->capacity,
					candidates->count + 1, sizeof(*candidates->names));
	candidates->names[candidates->count++] = memory_text(name, strcspn(name, "@"));
}

static const char *candidate_next(void *from, size_t at)
{
	const struct candidates *candidates = from;

	return at < candidates->count ? candidates->names[at] : NULL;
}

void elf_variable_nearest(const struct elf_file *elf, const char *name,
			  char nearest[VARIABLE_NAME_BYTES])
{
	struct candidates candidates = {0};
	struct elf_section names;
	const char *found;

	*nearest = '\0';
	elf_file_symbols(elf, ".dynsym", candidate_take, &candidates, &names);
	elf_file_symbols(elf, ".symtab", candidate_take, &candidates, &names);
	found = text_nearest(name, candidate_next, &candidates);
	if (found)
		text_into(nearest, VARIABLE_NAME_BYTES, found);
	for (size_t i = 0; i < candidates.count; i++)
		free(candidates.names[i]);
	free(candidates.names);
}
