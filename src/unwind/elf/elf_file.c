/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/elf_file.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTES_BYTES_MAX 4096
#define SECTION_NAME_MAX 32
#define HEADERS_MAX 256 /* program headers that are read; programs have a dozen */
/* Limits of a table of symbols, which is read in pieces: a matter of time, not of memory. */
#define SYMBOLS_BYTES_MAX (256ull << 20)
#define NAMES_BYTES_MAX (1ull << 30)
#define NAMES_AHEAD_MAX (64u << 20) /* names that are read at once */

int elf_file_take(const struct elf_file *elf, uint64_t offset, void *to, size_t bytes)
{
	char *at = to;

	if (offset > elf->bytes || bytes > elf->bytes - offset)
		return -ERANGE;
	if (elf->fd < 0) {
		memcpy(to, elf->image + offset, bytes);
		return 0;
	}
	while (bytes) {
		ssize_t got = pread(elf->fd, at, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ERANGE;
		at += got;
		offset += (uint64_t)got;
		bytes -= (size_t)got;
	}
	return 0;
}

/* Returns how many of the bytes lie in the file: segments that reach beyond are cut at its end. */
static uint64_t bytes_within(const struct elf_file *elf, uint64_t offset, uint64_t bytes)
{
	if (offset >= elf->bytes)
		return 0;
	return bytes < elf->bytes - offset ? bytes : elf->bytes - offset;
}

static int segment_header(const struct elf_file *elf, uint64_t offset, Elf64_Phdr *header)
{
	Elf32_Phdr narrow;
	int err;

	if (!elf->narrow)
		return elf_file_take(elf, offset, header, sizeof(*header));
	err = elf_file_take(elf, offset, &narrow, sizeof(narrow));
	if (!err)
		*header = (Elf64_Phdr){.p_type = narrow.p_type,
				       .p_flags = narrow.p_flags,
				       .p_offset = narrow.p_offset,
				       .p_vaddr = narrow.p_vaddr,
				       .p_filesz = narrow.p_filesz,
				       .p_memsz = narrow.p_memsz};
	return err;
}

static void build_id_find(struct elf_file *elf, uint64_t offset, uint64_t bytes)
{
	char notes[NOTES_BYTES_MAX];
	Elf64_Nhdr note; /* one layout for both ELF classes */

	if (bytes > sizeof(notes) || elf_file_take(elf, offset, notes, bytes))
		return;
	for (uint64_t at = 0; at + sizeof(note) <= bytes;) {
		uint64_t name = at + sizeof(note), text;

		memcpy(&note, notes + at, sizeof(note));
		text = name + ((uint64_t)note.n_namesz + 3) / 4 * 4;
		at = text + ((uint64_t)note.n_descsz + 3) / 4 * 4;
		if (text + note.n_descsz > bytes)
			return;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp(notes + name, "GNU", 4) != 0 || note.n_descsz > BUILD_ID_MAX)
			continue;
		elf->build_id_bytes = note.n_descsz;
		memcpy(elf->build_id, notes + text, note.n_descsz);
	}
}

static void segment_add(struct elf_file *elf, const Elf64_Phdr *header)
{
	struct elf_segment segment = {
		header->p_offset, bytes_within(elf, header->p_offset, header->p_filesz),
		header->p_vaddr, header->p_memsz, (header->p_flags & PF_X) != 0};

	if (header->p_type == PT_LOAD && elf->segment_count < ELF_SEGMENTS_MAX)
		elf->segments[elf->segment_count++] = segment;
	if (header->p_type == PT_GNU_EH_FRAME)
		elf->unwind = segment;
	if (header->p_type == PT_TLS) {
		elf->tls = segment;
		elf->tls_align = header->p_align;
	}
	if (header->p_type == PT_NOTE && !elf->build_id_bytes)
		build_id_find(elf, segment.offset, segment.file_bytes);
}

static int header_take(struct elf_file *elf, Elf64_Ehdr *header)
{
	Elf32_Ehdr narrow;
	int err = elf_file_take(elf, 0, header, EI_NIDENT);

	if (err)
		return -ENOEXEC;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	elf->narrow = header->e_ident[EI_CLASS] == ELFCLASS32;
	if (!elf->narrow)
		return elf_file_take(elf, 0, header, sizeof(*header));
	err = elf_file_take(elf, 0, &narrow, sizeof(narrow));
	if (!err)
		*header = (Elf64_Ehdr){.e_machine = narrow.e_machine,
				       .e_phoff = narrow.e_phoff,
				       .e_shoff = narrow.e_shoff,
				       .e_phentsize = narrow.e_phentsize,
				       .e_phnum = narrow.e_phnum,
				       .e_shentsize = narrow.e_shentsize,
				       .e_shnum = narrow.e_shnum,
				       .e_shstrndx = narrow.e_shstrndx};
	return err;
}

int elf_file_read(struct elf_file *elf, int fd, const char *image, uint64_t bytes)
{
	struct elf_file made = {.fd = fd, .image = image, .bytes = bytes};
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	int err = header_take(&made, &header);

	if (err)
		return err;
	made.machine = header.e_machine;
	if (header.e_phnum > HEADERS_MAX ||
	    header.e_phentsize < (made.narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)))
		return -ENOEXEC;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		if (segment_header(&made, header.e_phoff + (uint64_t)i * header.e_phentsize,
				   &segment))
			return -ENOEXEC;
		segment_add(&made, &segment);
	}
	made.sections_offset = header.e_shoff;
	made.section_bytes = header.e_shentsize;
	made.section_count = header.e_shnum;
	made.names_section = header.e_shstrndx;
	if (made.section_bytes < (made.narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr)))
		made.section_count = 0;
	*elf = made;
	return 0;
}

static int section_header(const struct elf_file *elf, uint32_t index, Elf64_Shdr *header)
{
	uint64_t offset = elf->sections_offset + (uint64_t)index * elf->section_bytes;
	Elf32_Shdr narrow;
	int err;

	if (index >= elf->section_count)
		return -ENOENT;
	if (!elf->narrow)
		return elf_file_take(elf, offset, header, sizeof(*header));
	err = elf_file_take(elf, offset, &narrow, sizeof(narrow));
	if (!err)
		*header = (Elf64_Shdr){.sh_name = narrow.sh_name,
				       .sh_type = narrow.sh_type,
				       .sh_addr = narrow.sh_addr,
				       .sh_offset = narrow.sh_offset,
				       .sh_size = narrow.sh_size,
				       .sh_link = narrow.sh_link,
				       .sh_entsize = narrow.sh_entsize};
	return err;
}

static int section_of_header(const struct elf_file *elf, const Elf64_Shdr *header,
			     struct elf_section *section)
{
	uint64_t bytes = header->sh_type == SHT_NOBITS ? 0 : header->sh_size;

	if (bytes != bytes_within(elf, header->sh_offset, bytes))
		return -ENOEXEC;
	*section = (struct elf_section){
		.offset = header->sh_offset,
		.bytes = bytes,
		.address = header->sh_addr,
		.entry_bytes = header->sh_entsize,
		.type = header->sh_type,
		.link = header->sh_link,
	};
	return 0;
}

int elf_file_section_at(const struct elf_file *elf, uint32_t index, struct elf_section *section)
{
	Elf64_Shdr header;
	int err = section_header(elf, index, &header);

	return err ? err : section_of_header(elf, &header, section);
}

int elf_file_section(const struct elf_file *elf, const char *name, struct elf_section *section)
{
	size_t length = strlen(name) + 1;
	char found[SECTION_NAME_MAX];
	struct elf_section names;
	Elf64_Shdr header;

	if (length > sizeof(found) || elf_file_section_at(elf, elf->names_section, &names))
		return -ENOENT;
	for (uint32_t i = 0; i < elf->section_count; i++) {
		if (section_header(elf, i, &header))
			return -ENOENT;
		if (header.sh_name >= names.bytes || length > names.bytes - header.sh_name ||
		    elf_file_take(elf, names.offset + header.sh_name, found, length) ||
		    memcmp(found, name, length) != 0)
			continue;
		return section_of_header(elf, &header, section);
	}
	return -ENOENT;
}

const void *elf_rows_next(struct elf_rows *rows)
{
	const char *row;
	uint64_t most = sizeof(rows->piece) / rows->each;

	if (!rows->left)
		return NULL;
	if (rows->used == rows->held) {
		rows->held = (rows->left < most ? rows->left : most) * rows->each;
		rows->used = 0;
		if (elf_file_take(rows->elf, rows->offset, rows->piece, rows->held))
			return NULL;
		rows->offset += rows->held;
	}
	row = rows->piece + rows->used;
	rows->used += rows->each;
	rows->left--;
	return row;
}

static Elf64_Sym symbol_widen(const Elf32_Sym *narrow)
{
	return (Elf64_Sym){.st_name = narrow->st_name,
			   .st_info = narrow->st_info,
			   .st_shndx = narrow->st_shndx,
			   .st_value = narrow->st_value,
			   .st_size = narrow->st_size};
}

bool elf_file_symbols(const struct elf_file *elf, const char *name, elf_symbol_callback *take,
		      void *of, struct elf_section *names)
{
	struct elf_rows rows = {.elf = elf,
				.each = elf->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym)};
	struct elf_section section;
	const void *row;
	char *text = NULL;

	if (elf_file_section(elf, name, &section) || !section.bytes ||
	    section.bytes > SYMBOLS_BYTES_MAX || elf_file_section_at(elf, section.link, names) ||
	    !names->bytes || names->bytes > NAMES_BYTES_MAX)
		return false;
	if (names->bytes <= NAMES_AHEAD_MAX) {
		text = memory_get(names->bytes + 1);
		if (elf_file_take(elf, names->offset, text, names->bytes)) {
			free(text);
			text = NULL;
		}
	}
	rows.offset = section.offset;
	rows.left = section.bytes / rows.each;
	while ((row = elf_rows_next(&rows))) {
		Elf64_Sym symbol;
		Elf32_Sym narrow;

		memcpy(elf->narrow ? (void *)&narrow : (void *)&symbol, row, rows.each);
		if (elf->narrow)
			symbol = symbol_widen(&narrow);
		if (symbol.st_name < names->bytes)
			take(of, &symbol, text ? text + symbol.st_name : NULL);
	}
	free(text);
	return true;
}

bool elf_address_of(const struct elf_file *elf, uint64_t offset, uint64_t *address)
{
	for (uint32_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *segment = &elf->segments[i];

		if (offset < segment->offset || offset - segment->offset >= segment->file_bytes)
			continue;
		*address = offset - segment->offset + segment->address;
		return true;
	}
	return false;
}

static bool offset_find(const struct elf_file *elf, uint64_t address, bool executable,
			uint64_t *offset, uint64_t *left)
{
	for (uint32_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *segment = &elf->segments[i];
		uint64_t from = address - segment->address;

		if (address < segment->address || from >= segment->file_bytes ||
		    (executable && !segment->executable))
			continue;
		*offset = segment->offset + from;
		*left = segment->file_bytes - from;
		return true;
	}
	return false;
}

bool elf_offset_of(const struct elf_file *elf, uint64_t address, uint64_t *offset, uint64_t *left)
{
	return offset_find(elf, address, false, offset, left);
}

bool elf_code_offset_of(const struct elf_file *elf, uint64_t address, uint64_t *offset,
			uint64_t *left)
{
	return offset_find(elf, address, true, offset, left);
}

/* True if the segment's pages in memory have all of these, which begin at that offset of the file.
 * A page of the file may have the end of one segment and the start of another. */
static bool segment_has(const struct elf_segment *segment, uint64_t offset, uint64_t bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t lead = segment->offset % page_bytes;
	const uint64_t held =
		(lead + segment->file_bytes + page_bytes - 1) / page_bytes * page_bytes;
	const uint64_t at = offset - (segment->offset - lead);

	return at < held && bytes <= held - at;
}

bool elf_place_code(const struct elf_file *elf, const struct elf_pages *of_file,
		    struct elf_pages *code)
{
	for (uint32_t i = 0; i < elf->segment_count * elf->segment_count; i++) {
		const struct elf_segment *from = &elf->segments[i / elf->segment_count],
					 *to = &elf->segments[i % elf->segment_count];

		if (from->executable != of_file->executable || !to->executable ||
		    !segment_has(from, of_file->offset, of_file->end - of_file->start))
			continue;
		code->offset = code->start - of_file->start + of_file->offset +
			       (from->address - from->offset) - (to->address - to->offset);
		if (segment_has(to, code->offset, code->end - code->start))
			return true;
	}
	return false;
}
