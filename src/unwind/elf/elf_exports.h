/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds symbols that a file exports: its .dynsym, which no strip takes away, by .gnu.hash. */
#ifndef TSNAP_UNWIND_ELF_ELF_EXPORTS_H
#define TSNAP_UNWIND_ELF_ELF_EXPORTS_H

#include <stdint.h>

#include "unwind/elf/elf_file.h"

/* Fills addresses, as the file has them; 0 where it exports no such name. Returns how many were
 * found. 64-bit files only. */
unsigned int elf_exports(const struct elf_file *elf, const char *const *names, uint64_t *addresses,
			 unsigned int count);

#endif
