/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* Gets size bytes at offset of the image; false if it does not have them. */
static bool part_get(const void *image, size_t image_size, uint64_t offset, uint64_t size,
		     struct elf_part *part)
{
	if (offset > image_size || size > image_size - offset)
		return false;
	*part = (struct elf_part){(const unsigned char *)image + offset, (size_t)size};
	return true;
}

static bool record_get(const void *image, size_t image_size, uint64_t offset, void *to, size_t size)
{
	struct elf_part part;

	if (!part_get(image, image_size, offset, size, &part))
		return false;
	memcpy(to, part.bytes, size);
	return true;
}

static bool header_get(const void *image, size_t size, Elf64_Ehdr *header)
{
	static const unsigned char ident[] = {
		ELFMAG0,
		ELFMAG1,
		ELFMAG2,
		ELFMAG3,
		ELFCLASS64,
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		ELFDATA2LSB
#else
		ELFDATA2MSB
#endif
	};

	return record_get(image, size, 0, header, sizeof(*header)) &&
	       !memcmp(header->e_ident, ident, sizeof(ident));
}

bool elf_is(const void *image, size_t size)
{
	Elf64_Ehdr header;

	return header_get(image, size, &header);
}

static bool section_get(const void *image, size_t size, const Elf64_Ehdr *header, size_t at,
			Elf64_Shdr *section)
{
	return at < header->e_shnum && header->e_shentsize == sizeof(*section) &&
	       header->e_shoff <= size &&
	       record_get(image, size, header->e_shoff + at * sizeof(*section), section,
			  sizeof(*section));
}

int elf_section_find(const void *image, size_t size, const char *name, struct elf_part *part)
{
	size_t name_bytes = strlen(name) + 1;
	Elf64_Ehdr header;
	Elf64_Shdr section;
	struct elf_part names, is;

	if (!header_get(image, size, &header) ||
	    !section_get(image, size, &header, header.e_shstrndx, &section) ||
	    !part_get(image, size, section.sh_offset, section.sh_size, &names))
		return -ENOENT;
	for (size_t i = 0; i < header.e_shnum; i++) {
		if (!section_get(image, size, &header, i, &section) ||
		    !part_get(names.bytes, names.size, section.sh_name, name_bytes, &is) ||
		    memcmp(is.bytes, name, name_bytes) || section.sh_type == SHT_NOBITS ||
		    section.sh_flags & SHF_COMPRESSED)
			continue;
		return part_get(image, size, section.sh_offset, section.sh_size, part) ? 0
										       : -ENOENT;
	}
	return -ENOENT;
}

static size_t rounded_up(uint32_t bytes)
{
	return ((size_t)bytes + 3) & ~(size_t)3;
}

static int note_find(const struct elf_part *notes, const char *owner, uint32_t type,
		     struct elf_part *part)
{
	size_t at = 0, owner_bytes = strlen(owner) + 1;
	Elf64_Nhdr note;
	struct elf_part is;

	while (record_get(notes->bytes, notes->size, at, &note, sizeof(note))) {
		at += sizeof(note);
		if (!part_get(notes->bytes, notes->size, at, note.n_namesz, &is))
			break;
		at += rounded_up(note.n_namesz);
		if (!part_get(notes->bytes, notes->size, at, note.n_descsz, part))
			break;
		at += rounded_up(note.n_descsz);
		if (note.n_type == type && is.size == owner_bytes &&
		    !memcmp(is.bytes, owner, owner_bytes))
			return 0;
	}
	return -ENOENT;
}

int elf_note_find(const void *image, size_t size, const char *owner, uint32_t type,
		  struct elf_part *part)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	struct elf_part notes, found;

	if (!header_get(image, size, &header) || header.e_phentsize != sizeof(segment) ||
	    header.e_phoff > size)
		return -ENOENT;
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (!record_get(image, size, header.e_phoff + i * sizeof(segment), &segment,
				sizeof(segment)))
			break;
		if (segment.p_type != PT_NOTE ||
		    !part_get(image, size, segment.p_offset, segment.p_filesz, &notes) ||
		    note_find(&notes, owner, type, &found))
			continue;
		*part = found;
		return 0;
	}
	return -ENOENT;
}
