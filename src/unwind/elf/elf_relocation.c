/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_relocation.h"
#include "base/memory.h"

#include <elf.h>
#include <stdlib.h>

#define PIECE_RELOCATIONS 1024
#define RELOCATIONS_MAX (4u << 20)

uint64_t elf_relocation_find(const struct elf_file *elf, uint64_t address)
{
	static const char *const names[] = {".rela.dyn", ".rela"};
	Elf64_Rela *piece;
	struct elf_section section;
	uint64_t found = 0;

	if (elf->narrow)
		return 0;
	piece = memory_get(PIECE_RELOCATIONS * sizeof(*piece));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++) {
		uint64_t count;

		if (elf_file_section(elf, names[i], &section))
			continue;
		count = section.bytes / sizeof(*piece);
		if (count > RELOCATIONS_MAX)
			continue;
		for (uint64_t at = 0; at < count && !found; at += PIECE_RELOCATIONS) {
			uint64_t n =
				count - at < PIECE_RELOCATIONS ? count - at : PIECE_RELOCATIONS;

			if (elf_file_take(elf, section.offset + at * sizeof(*piece), piece,
					  n * sizeof(*piece)))
				break;
			for (uint64_t j = 0; j < n && !found; j++)
				if (piece[j].r_offset == address)
					found = (uint64_t)piece[j].r_addend;
		}
	}
	free(piece);
	return found;
}
