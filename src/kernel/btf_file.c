/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/btf_file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BTF_BYTES_MAX (256u << 20)
#define NESTING_MAX 8	       /* anonymous structs and unions in one another */
#define MEMBERS_MAX (1u << 20) /* looked at for one name: a hostile file can nest without end */
#define TYPES_MAX (1u << 24)
#define KIND_STRUCT 4
#define KIND_UNION 5

struct header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t header_bytes;
	/* where the parts lie, from the header's end */
	uint32_t types_at, types_bytes, strings_at, strings_bytes;
	uint32_t layout_at, layout_bytes; /* since 2026, if header_bytes says so */
};
#define HEADER_BYTES_MIN 24

struct type {
	uint32_t name, info, size;
};

struct member {
	uint32_t name, type, offset;
};

/* What follows a type: once, and for each of its members. In a file it tells kinds that are newer
 * than this program. */
struct kind {
	uint8_t once, each;
	uint16_t flags;
};

static const struct kind kinds[] = {
	[1] = {4, 0, 0},  /* integer */
	[2] = {0},	  /* pointer */
	[3] = {12, 0, 0}, /* array */
	[KIND_STRUCT] = {0, 12, 0},
	[KIND_UNION] = {0, 12, 0},
	[6] = {0, 8, 0},   /* enum */
	[7] = {0},	   /* forward */
	[8] = {0},	   /* typedef */
	[9] = {0},	   /* volatile */
	[10] = {0},	   /* const */
	[11] = {0},	   /* restrict */
	[12] = {0},	   /* function */
	[13] = {0, 8, 0},  /* prototype */
	[14] = {4, 0, 0},  /* variable */
	[15] = {0, 12, 0}, /* section */
	[16] = {0},	   /* float, 5.13 */
	[17] = {4, 0, 0},  /* declaration tag, 5.16 */
	[18] = {0},	   /* type tag, 5.17 */
	[19] = {0, 12, 0}, /* enum of 64 bits, 6.0 */
};

static uint32_t kind_of(const struct type *type)
{
	return type->info >> 24 & 0x7f;
}

static uint32_t members_of(const struct type *type)
{
	return type->info & 0xffffff;
}

static const struct type *type_at(const struct btf_file *btf, uint32_t id)
{
	return (const struct type *)(btf->words + btf->types[id]);
}

static const char *name_at(const struct btf_file *btf, uint32_t at)
{
	return at < btf->strings_bytes ? btf->strings + at : "";
}

static bool read_at(int fd, uint64_t at, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = pread(fd, (char *)to + done, bytes - done, (off_t)(at + done));

		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* Where in the file the BTF lies; false if it is an ELF file without it. */
static bool part_find(int fd, uint64_t *at, uint64_t *bytes)
{
	ElfW(Ehdr) elf;
	ElfW(Shdr) section, names;
	char name[sizeof(".BTF")];

	if (!read_at(fd, 0, &elf, sizeof(elf)) || memcmp(elf.e_ident, ELFMAG, SELFMAG))
		return true;
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_shentsize != sizeof(section) ||
	    !read_at(fd, elf.e_shoff + (uint64_t)elf.e_shstrndx * sizeof(names), &names,
		     sizeof(names)))
		return false;
	for (uint32_t i = 0; i < elf.e_shnum; i++) {
		if (!read_at(fd, elf.e_shoff + (uint64_t)i * sizeof(section), &section,
			     sizeof(section)))
			return false;
		if (!read_at(fd, names.sh_offset + section.sh_name, name, sizeof(name)) ||
		    memcmp(name, ".BTF", sizeof(name)))
			continue;
		*at = section.sh_offset;
		*bytes = section.sh_size;
		return true;
	}
	return false;
}

static bool part_inside(uint32_t at, uint32_t bytes, uint64_t whole)
{
	return (uint64_t)at + bytes <= whole;
}

/* Finds where each type begins: they are of different sizes. NULL, or why not. */
static const char *types_index(struct btf_file *btf, uint32_t first, uint32_t count,
			       const struct kind *layout, uint32_t layout_count)
{
	uint32_t room = 0;
	uint64_t words;

	btf->type_count = 1;
	for (uint32_t at = 0; at < count; at += (uint32_t)words) {
		const struct type *type = (const struct type *)(btf->words + first + at);
		const struct kind *kind;
		uint32_t number;

		if (count - at < sizeof(*type) / 4)
			return "its types are cut off";
		number = kind_of(type);
		if (number && number < sizeof(kinds) / sizeof(kinds[0]))
			kind = &kinds[number];
		else if (number && number < layout_count)
			kind = &layout[number];
		else
			return "it has a kind of type that tsnap does not know";
		words = (sizeof(*type) + kind->once + (uint64_t)kind->each * members_of(type)) / 4;
		if (kind->once % 4 || kind->each % 4 || words > count - at)
			return "its types are cut off";
		if (btf->type_count >= room) {
			room = room ? room * 2 : 1 << 16;
			if (room > TYPES_MAX)
				return "it has too many types";
			btf->types = memory_resize(btf->types, room, sizeof(*btf->types));
		}
		btf->types[btf->type_count++] = first + at;
	}
	return NULL;
}

/* Checks the BTF in btf->words and finds its parts; NULL, or why it can't be used. */
static const char *parts_check(struct btf_file *btf, uint64_t bytes)
{
	struct header header = {0};
	const struct kind *layout = NULL;
	uint32_t first;

	memcpy(&header, btf->words, HEADER_BYTES_MIN);
	if (header.magic != 0xeb9f || header.version != 1)
		return "it does not begin as BTF does";
	if (header.header_bytes < HEADER_BYTES_MIN || header.header_bytes % 4 ||
	    header.header_bytes > bytes)
		return "its header is wrong";
	if (header.header_bytes >= sizeof(header))
		memcpy(&header, btf->words, sizeof(header));
	bytes -= header.header_bytes;
	if (header.types_at % 4 || header.layout_at % 4 || !header.strings_bytes ||
	    !part_inside(header.types_at, header.types_bytes, bytes) ||
	    !part_inside(header.strings_at, header.strings_bytes, bytes) ||
	    !part_inside(header.layout_at, header.layout_bytes, bytes))
		return "it is cut off";
	first = header.header_bytes / 4;
	btf->strings = (const char *)(btf->words + first) + header.strings_at;
	btf->strings_bytes = header.strings_bytes;
	if (btf->strings[btf->strings_bytes - 1])
		return "its names are cut off";
	layout = (const struct kind *)(btf->words + first + header.layout_at / 4);
	return types_index(btf, first + header.types_at / 4, header.types_bytes / 4, layout,
			   header.layout_bytes / (uint32_t)sizeof(*layout));
}

/* NULL, or why it can't be used. */
static const char *file_take(int fd, uint64_t file_bytes, struct btf_file *btf)
{
	uint64_t at = 0, bytes = file_bytes;

	if (!part_find(fd, &at, &bytes))
		return "an ELF file without a section .BTF that can be read";
	if (at > file_bytes || bytes > file_bytes - at)
		return "it is cut off";
	if (bytes < HEADER_BYTES_MIN)
		return "it is too short";
	if (bytes > BTF_BYTES_MAX)
		return "it has more than 256 MB";
	btf->words = memory_resize(NULL, bytes / 4 + 1, 4);
	return read_at(fd, at, btf->words, bytes) ? parts_check(btf, bytes) : "it can't be read";
}

int btf_file_read(const char *path, struct btf_file *btf, struct error *e)
{
	struct btf_file new = {0};
	struct stat stat_of;
	const char *why;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return error_set(e, errno, EXIT_FAILED, "BTF file '%s' can't be read: %s", path,
				 strerror(errno));
	if (fstat(fd, &stat_of) || !S_ISREG(stat_of.st_mode))
		why = "no regular file";
	else
		why = file_take(fd, (uint64_t)stat_of.st_size, &new);
	close(fd);
	if (why) {
		btf_file_done(&new);
		return error_set(e, EINVAL, EXIT_FAILED,
				 "'%s' is not BTF that can be used: %s; give the vmlinux BTF of "
				 "this kernel, raw or in ELF",
				 path, why);
	}
	*btf = new;
	return 0;
}

void btf_file_done(struct btf_file *btf)
{
	free(btf->words);
	free(btf->types);
	*btf = (struct btf_file){0};
}

uint32_t btf_struct_find(const struct btf_file *btf, const char *name, uint32_t *bytes)
{
	for (uint32_t id = 1; id < btf->type_count; id++) {
		const struct type *type = type_at(btf, id);

		if (kind_of(type) != KIND_STRUCT || strcmp(name_at(btf, type->name), name))
			continue;
		*bytes = type->size;
		return id;
	}
	return 0;
}

static int64_t member_search(const struct btf_file *btf, uint32_t id, const char *name, int nesting,
			     uint32_t *left)
{
	const struct type *type = id && id < btf->type_count ? type_at(btf, id) : NULL;
	const struct member *member;
	bool sized;

	if (!type || nesting > NESTING_MAX ||
	    (kind_of(type) != KIND_STRUCT && kind_of(type) != KIND_UNION))
		return -1;
	/* of bit-fields the offset's upper bits tell the size */
	sized = type->info >> 31;
	member = (const struct member *)(type + 1);
	for (uint32_t i = members_of(type); i && *left; i--, member++, --*left) {
		const char *is = name_at(btf, member->name);
		uint32_t bits = sized ? member->offset & 0xffffff : member->offset;
		int64_t inner;

		if (!strcmp(is, name))
			return bits % 8 || (sized && member->offset >> 24) ? -1
									   : (int64_t)(bits / 8);
		inner = *is ? -1 : member_search(btf, member->type, name, nesting + 1, left);
		if (inner >= 0)
			return inner + bits / 8;
	}
	return -1;
}

int64_t btf_member_find(const struct btf_file *btf, uint32_t type, const char *name)
{
	uint32_t left = MEMBERS_MAX;

	return member_search(btf, type, name, 0, &left);
}
