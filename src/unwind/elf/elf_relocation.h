/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Words of a position-independent program that its file does not have: the dynamic linker writes
 * them. */
#ifndef TSNAP_UNWIND_ELF_ELF_RELOCATION_H
#define TSNAP_UNWIND_ELF_ELF_RELOCATION_H

#include <stdint.h>

#include "unwind/elf/elf_file.h"

/* Returns the word that will be at an address, counted from where the program is loaded. 0: it is
 * not known. */
uint64_t elf_relocation_find(const struct elf_file *elf, uint64_t address);

#endif
