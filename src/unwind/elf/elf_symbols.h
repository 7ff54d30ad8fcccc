/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of one ELF file: .symtab, .dynsym, and what .gnu_debugdata (the "mini debug
 * information" of Fedora and RHEL), Go's own table or a separate debug file adds.
 */
#ifndef TSNAP_UNWIND_ELF_ELF_SYMBOLS_H
#define TSNAP_UNWIND_ELF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "unwind/elf/elf_file.h"
#include "unwind/elf/go_program.h"
#include "unwind/elf/symbol_table.h"

struct symbol_source {
	struct elf_file elf;
	uint64_t names_offset, names_bytes;
	bool own_fd;
	char *image; /* owned, or NULL */
	bool is_go;  /* names are found by go, not in names_bytes */
	struct go_table go;
};

struct elf_symbols {
	struct symbol_table table;
	struct symbol_source sources[SYMBOL_SOURCES_MAX];
	unsigned int source_count;
	bool whole; /* has a .symtab */
};

/* Adds the file's symbols; the file's descriptor or bytes must stay. */
void elf_symbols_add(struct elf_symbols *symbols, const struct elf_file *elf);
/* Adds the symbols of the file of a descriptor, which is taken over, if the file has the build-id
 * of `of`. */
void elf_symbols_add_debug(struct elf_symbols *symbols, int fd, const struct elf_file *of);
void elf_symbols_sort(struct elf_symbols *symbols);
void elf_symbols_done(struct elf_symbols *symbols);
size_t elf_symbols_bytes(const struct elf_symbols *symbols);

/* Fills name with that of the function at an address, cut at size - 1. False where there is
 * none. */
bool elf_symbol_name(const struct elf_symbols *symbols, uint64_t address, char *name, size_t size);

/* Fills text with a C++ or Rust name as people write it, through libiberty: cut at size - 1,
 * without parameters. False where the name is not a mangled one, or libiberty is missing: it is to
 * be shown as it is. */
bool name_demangle(const char *name, char *text, size_t size);

#endif
