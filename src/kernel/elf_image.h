/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds parts of an ELF file (64 bits, this machine's byte order) that is in memory. Nothing in it
 * is trusted: what does not lie in the image is not there.
 */
#ifndef TSNAP_KERNEL_ELF_IMAGE_H
#define TSNAP_KERNEL_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_part {
	const unsigned char *bytes; /* address in the image; not aligned */
	size_t size;
};

bool elf_is(const void *image, size_t size);
/* Finds a section with contents by name. 0 or -ENOENT. */
int elf_section_find(const void *image, size_t size, const char *name, struct elf_part *part);
/* Finds the contents of a note by owner and type. 0 or -ENOENT. */
int elf_note_find(const void *image, size_t size, const char *owner, uint32_t type,
		  struct elf_part *part);

#endif
