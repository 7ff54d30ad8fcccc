/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_symbols.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef TSNAP_HAS_LZMA
#include <lzma.h>
#endif
#ifdef TSNAP_HAS_DEMANGLE
#include <libiberty/demangle.h>
#endif

#define PACKED_BYTES_MAX (16u << 20) /* size of .gnu_debugdata, packed */
#define UNPACKED_BYTES_MAX (64u << 20)
#define UNPACK_MEMORY_MAX (64u << 20)

/* Returns the rank of a symbol among those at one address; the lowest is the name that people use:
 * global before weak before local, read before __read before __GI___read. */
static unsigned int symbol_rank(const Elf64_Sym *symbol, const char *name)
{
	unsigned int bind = ELF64_ST_BIND(symbol->st_info), underscores = 0;
	unsigned int rank = bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;

	while (name && underscores < 2 && name[underscores] == '_')
		underscores++;
	rank = rank * 3 + underscores;
	/* a label of assembler code */
	return ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE ? SYMBOL_RANKS - 1 : rank;
}

static void symbol_take(void *of, const Elf64_Sym *symbol, const char *name)
{
	struct elf_symbols *symbols = of;
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE || !symbol->st_value)
		return;
	/* $x, $d: arm64's marks of code and data */
	if (name && (!*name || *name == '$'))
		return;
	symbol_add(&symbols->table, symbol->st_value, symbol->st_size, symbol_rank(symbol, name),
		   symbols->source_count, symbol->st_name);
}

/* True if the section's symbols were taken. */
static bool section_add(struct elf_symbols *symbols, const struct elf_file *elf, const char *name)
{
	struct elf_section names;

	if (symbols->source_count == SYMBOL_SOURCES_MAX ||
	    !elf_file_symbols(elf, name, symbol_take, symbols, &names))
		return false;
	symbols->sources[symbols->source_count++] = (struct symbol_source){
		.elf = *elf, .names_offset = names.offset, .names_bytes = names.bytes};
	return true;
}

static void unpacked_add(struct elf_symbols *symbols, const struct elf_file *elf)
{
#ifdef TSNAP_HAS_LZMA
	struct elf_section section;
	uint64_t memory = UNPACK_MEMORY_MAX;
	size_t from = 0, to = 0;
	struct elf_file inner;
	uint8_t *packed, *image;

	if (elf_file_section(elf, ".gnu_debugdata", &section) || section.bytes > PACKED_BYTES_MAX)
		return;
	packed = memory_get(section.bytes + 1);
	image = memory_get(UNPACKED_BYTES_MAX);
	if (!elf_file_take(elf, section.offset, packed, section.bytes) &&
	    lzma_stream_buffer_decode(&memory, 0, NULL, packed, &from, section.bytes, image, &to,
				      UNPACKED_BYTES_MAX) == LZMA_OK) {
		image = memory_resize(image, to + 1, 1);
		if (!elf_file_read(&inner, -1, (char *)image, to) &&
		    section_add(symbols, &inner, ".symtab")) {
			symbols->sources[symbols->source_count - 1].image = (char *)image;
			symbols->whole = true;
			image = NULL;
		}
	}
	free(image);
	free(packed);
#else
	(void)symbols;
	(void)elf;
#endif
}

static void go_add(struct elf_symbols *symbols, const struct elf_file *elf)
{
	struct symbol_source source = {.elf = *elf, .is_go = true};

	if (symbols->source_count == SYMBOL_SOURCES_MAX || go_table_read(&source.go, elf))
		return;
	go_table_symbols(&source.go, elf, &symbols->table, symbols->source_count);
	symbols->sources[symbols->source_count++] = source;
}

void elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *elf)
{
	if (section_add(symbols, elf, ".symtab"))
		symbols->whole = true;
	else
		section_add(symbols, elf, ".dynsym");
	if (!symbols->whole)
		unpacked_add(symbols, elf);
	if (!symbols->whole)
		go_add(symbols, elf);
}

void elf_symbols_add_debug(struct elf_symbols *symbols, int fd, const struct elf_file *of)
{
	struct elf_file elf;
	struct stat file;

	if (fstat(fd, &file) || !S_ISREG(file.st_mode) ||
	    elf_file_read(&elf, fd, NULL, (uint64_t)file.st_size) ||
	    elf.build_id_bytes != of->build_id_bytes ||
	    memcmp(elf.build_id, of->build_id, of->build_id_bytes) != 0 ||
	    !section_add(symbols, &elf, ".symtab")) {
		close(fd);
		return;
	}
	symbols->sources[symbols->source_count - 1].own_fd = true;
	symbols->whole = true;
}

void elf_symbols_sort(struct elf_symbols *symbols)
{
	symbol_table_sort(&symbols->table, false);
}

void elf_symbols_done(struct elf_symbols *symbols)
{
	for (unsigned int i = 0; i < symbols->source_count; i++) {
		if (symbols->sources[i].own_fd)
			close(symbols->sources[i].elf.fd);
		free(symbols->sources[i].image);
	}
	symbol_table_done(&symbols->table);
	*symbols = (struct elf_symbols){.source_count = 0};
}

size_t elf_symbols_bytes(const struct elf_symbols *symbols)
{
	size_t bytes = symbols->table.capacity * sizeof(struct symbol);

	for (unsigned int i = 0; i < symbols->source_count; i++)
		if (symbols->sources[i].image)
			bytes += symbols->sources[i].elf.bytes;
	return bytes;
}

bool elf_symbol_name(const struct elf_symbols *symbols, uint64_t address, char *name, size_t size)
{
	const struct symbol *symbol = symbol_find(&symbols->table, address);
	const struct symbol_source *source;
	uint64_t left;

	if (!symbol)
		return false;
	source = &symbols->sources[symbol_source(symbol)];
	if (source->is_go)
		return go_table_name(&source->go, &source->elf, symbol_location(symbol), name,
				     size);
	left = source->names_bytes - symbol_location(symbol);
	if (left < size)
		size = left + 1;
	if (elf_file_take(&source->elf, source->names_offset + symbol_location(symbol), name,
			  size - 1))
		return false;
	name[size - 1] = '\0';
	return *name;
}

#ifdef TSNAP_HAS_DEMANGLE
#define NAME_LENGTH_MAX 4096

struct output {
	char *text;
	size_t size, length;
	jmp_buf full;
};

/* A short name may stand for one of any length, for it can refer to parts of itself, so that it
 * must be stopped when there is enough. The functions with a callback hold no memory. */
static void output_take(const char *piece, size_t length, void *to)
{
	struct output *output = to;
	size_t left = output->size - 1 - output->length;

	memcpy(output->text + output->length, piece, length < left ? length : left);
	output->length += length < left ? length : left;
	output->text[output->length] = '\0';
	if (length > left)
		longjmp(output->full, 1);
}

bool name_demangle(const char *name, char *text, size_t size)
{
	struct output output = {.text = text, .size = size};
	bool cplusplus = !strncmp(name, "_Z", 2);

	if ((!cplusplus && strncmp(name, "_R", 2) != 0) || strlen(name) > NAME_LENGTH_MAX)
		return false;
	*text = '\0';
	if (setjmp(output.full))
		return true;
	/* Rust's older names are C++ names with a hash */
	if (rust_demangle_callback(name, 0, output_take, &output))
		return true;
	output.length = 0;
	return cplusplus && cplus_demangle_v3_callback(name, DMGL_ANSI, output_take, &output);
}
#else
bool name_demangle(const char *name, char *text, size_t size)
{
	(void)name;
	(void)text;
	(void)size;
	return false;
}
#endif
