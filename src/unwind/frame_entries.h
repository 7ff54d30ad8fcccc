/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entries of .eh_frame: finds the one of an address (FDE), by the file's search table or, where
 * it has none, by an index that is made of all entries; and checks whether its program, and that of
 * the CIE that it begins with, may be run. Everything in them is hostile.
 */
#ifndef TSNAP_UNWIND_FRAME_ENTRIES_H
#define TSNAP_UNWIND_FRAME_ENTRIES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/elf_file.h"

#define FRAME_INDEX_MAX 131072 /* entries of a file without a search table */

struct frame_entry {
	uint64_t address; /* address of the function */
	uint64_t offset;  /* offset from .eh_frame's beginning */
};

struct frame_entries {
	const unsigned char *ident; /* the ELF file's e_ident */
	bool narrow;
	uint64_t address; /* address of .eh_frame */
	Elf_Data data;	  /* .eh_frame, to the end of what there is */
	/* Search table: pairs of 32-bit numbers, relative to table_address */
	const uint8_t *table;
	uint64_t table_address;
	size_t table_count;
	/* Index that replaces a missing search table, in order of address. */
	struct frame_entry *index;
	size_t index_count, index_capacity;
	/* CIE that was looked at last. */
	uint64_t cie_offset; /* UINT64_MAX: none was looked at */
	bool cie_fits, cie_sized;
	uint8_t encoding; /* encoding of addresses in the CIE's FDEs */
};

/* Finds the tables of a file. image: the file's bytes, as far as they were read: its header and the
 * search table (elf->unwind), or, where unwind.file_bytes is 0, .eh_frame; image must outlive
 * entries. Returns 0 or -errno. */
int frame_entries_open(struct frame_entries *entries, const char *image, const struct elf_file *elf,
		       const struct elf_section *section);
void frame_entries_done(struct frame_entries *entries);
size_t frame_entries_bytes(const struct frame_entries *entries); /* memory that the index takes */

/* Finds the entry that is nearest below an address, if libdw may run it. Returns 0 or -ENOENT. */
int frame_entries_find(struct frame_entries *entries, uint64_t address, struct frame_entry *entry);

#endif
