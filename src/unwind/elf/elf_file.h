/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ELF file as far as stacks need it: segments, sections, build-id. It is read in pieces and
 * never mapped: whoever owns it may cut it at any time. Everything in it is hostile. Little-endian
 * only.
 */
#ifndef TSNAP_UNWIND_ELF_ELF_FILE_H
#define TSNAP_UNWIND_ELF_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 32
#define BUILD_ID_MAX 32

struct elf_segment {
	uint64_t offset, file_bytes, address, memory_bytes;
	bool executable;
};

struct elf_section {
	uint64_t offset, bytes, address, entry_bytes;
	uint32_t type, link;
};

struct elf_file {
	int fd;		   /* descriptor, not owned; -1: the file is in image */
	const char *image; /* bytes of a file in memory, not owned */
	uint64_t bytes;
	uint8_t narrow; /* bool: 32 bits */
	uint16_t machine;
	uint32_t segment_count; /* segments to be loaded (PT_LOAD) */
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	struct elf_segment unwind; /* PT_GNU_EH_FRAME; file_bytes 0: none */
	struct elf_segment tls;	   /* PT_TLS; memory_bytes 0: none */
	uint64_t tls_align;	   /* 64-bit files only */
	uint64_t sections_offset;
	uint32_t section_count, section_bytes, names_section;
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: none */
};

/* Reads the headers of a file. fd: of a regular file, or -1 where image has the file. Returns 0, or
 * -errno (-ENOEXEC: no such ELF file). */
int elf_file_read(struct elf_file *elf, int fd, const char *image, uint64_t bytes);

/* Reads exactly that many bytes. Returns 0 or -errno; -ERANGE past the end. */
int elf_file_take(const struct elf_file *elf, uint64_t offset, void *to, size_t bytes);

/* Find the section of that name, or of that index. Return 0, -ENOENT, or -ENOEXEC where it lies
 * outside of the file. */
int elf_file_section(const struct elf_file *elf, const char *name, struct elf_section *section);
int elf_file_section_at(const struct elf_file *elf, uint32_t index, struct elf_section *section);

/* A table in a file, of rows with `each` bytes, of which `left` are left from offset on. It is read
 * in pieces; the other members are zeroed at first. */
struct elf_rows {
	const struct elf_file *elf;
	uint64_t offset, left;
	size_t each, held, used;
	char piece[32768];
};

/* Returns the next row, valid until the next call, or NULL. */
const void *elf_rows_next(struct elf_rows *rows);

/* Callback for a symbol, in the form of 64-bit files. name: NULL where the file has too many. */
typedef void elf_symbol_callback(void *of, const Elf64_Sym *symbol, const char *name);

/* Takes the symbols of the section of that name, and fills the section of their names. False: there
 * is no such section, or it is larger than any that is meant. */
bool elf_file_symbols(const struct elf_file *elf, const char *name, elf_symbol_callback *take,
		      void *of, struct elf_section *names);

/* Finds the address, as the file has addresses, of what is at that offset of the file. */
bool elf_address_of(const struct elf_file *elf, uint64_t offset, uint64_t *address);

/* Finds the offset in the file of what has that address, as the file has addresses, and how many of
 * its bytes follow there. */
bool elf_offset_of(const struct elf_file *elf, uint64_t address, uint64_t *offset, uint64_t *left);
/* The same for an address of code: only segments that can be executed count. */
bool elf_code_offset_of(const struct elf_file *elf, uint64_t address, uint64_t *offset,
			uint64_t *left);

/* Pages of a process, and the offset in a file of what they have. */
struct elf_pages {
	uint64_t start, end, offset;
	bool executable;
};

/* Finds what part of the file the code in pages would be, from where the process has other pages of
 * it: fills code->offset. False: the pages are in none of the file's segments with code. */
bool elf_place_code(const struct elf_file *elf, const struct elf_pages *of_file,
		    struct elf_pages *code);

#endif
