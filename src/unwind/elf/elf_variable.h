/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a variable of a file by its name, in .dynsym or, unless that was stripped, in .symtab; and
 * of a thread-local one how each thread's copy is found from outside.
 *
 * Thread-local variables of a file lie in one block for each thread. The block of the program
 * itself is at a distance from the thread pointer that the file alone decides ("ELF Handling For
 * Thread-Local Storage", variant I on arm64, II on x86-64). For a library the dynamic linker
 * decides, and leaves what it decided in words that relocations name, for the library's own code.
 */
#ifndef TSNAP_UNWIND_ELF_ELF_VARIABLE_H
#define TSNAP_UNWIND_ELF_ELF_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/elf_file.h"

#define VARIABLE_NAME_BYTES 128

/* What the words at the slot have. */
enum variable_slot {
	SLOT_NONE,
	SLOT_OFFSET,	 /* distance from the thread pointer (TPOFF64) */
	SLOT_MODULE,	 /* number of the block's module (DTPMOD64) */
	SLOT_PAIR,	 /* the same, and then the variable's place in the block (DTPOFF64) */
	SLOT_DESCRIPTOR, /* a function, and then its argument (TLSDESC) */
};

struct elf_variable {
	uint8_t found, thread_local_storage; /* bool */
	/* address as the file has addresses; of a thread-local variable its place in the block */
	uint64_t address;
	uint64_t bytes; /* 0: not known */
	/* if this file is the program: distance of the block from the thread pointer */
	int64_t block_at;
	uint32_t slot_kind; /* enum variable_slot */
	uint64_t slot;	    /* address as the file has addresses */
	/* bytes from what an OFFSET or a DESCRIPTOR refers to, to the variable */
	int64_t from_slot;
};

/* Fills variable; not found: no symbol of a variable has that name. exported: .symtab, which may be
 * large, is not read. */
void elf_variable_find(const struct elf_file *elf, const char *name, bool exported,
		       struct elf_variable *variable);

/* Finds the variable whose name is most like that one; "": there is none. */
void elf_variable_nearest(const struct elf_file *elf, const char *name,
			  char nearest[VARIABLE_NAME_BYTES]);

#endif
