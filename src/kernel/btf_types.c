/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/btf_types.h"
#include "base/memory.h"
#include "kernel/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BTF_BYTES_MAX (256l << 20)
#define NESTING_MAX 8	       /* unnamed structs and unions in one another */
#define MEMBERS_MAX (1u << 14) /* members read for one name: a hostile file nests wide, too */

/* struct btf_header of include/uapi/linux/btf.h, declared here because that header grew in 2026 by
 * the two last words, which only newer files have. */
struct btf_start {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len, type_off, type_len, str_off, str_len, layout_off, layout_len;
};
#define START_BYTES_MIN offsetof(struct btf_start, layout_off)

/* Bytes that follow each kind of type: once, and for each of its vlen. A file since 2026 has the
 * same table, for kinds that are newer than this one. */
struct kind_bytes {
	uint8_t once, each;
	uint16_t flags;
};

/* Table by number, because older headers name fewer kinds. */
static const struct kind_bytes kind_bytes[] = {
	[1] = {.once = 4},  [2] = {0},		[3] = {.once = 12},  [4] = {.each = 12},
	[5] = {.each = 12}, [6] = {.each = 8},	[7] = {0},	     [8] = {0},
	[9] = {0},	    [10] = {0},		[11] = {0},	     [12] = {0},
	[13] = {.each = 8}, [14] = {.once = 4}, [15] = {.each = 12}, [16] = {0},
	[17] = {.once = 4}, [18] = {0},		[19] = {.each = 12},
};

#define KIND_COUNT (sizeof(kind_bytes) / sizeof(kind_bytes[0]))

/* Before 2026 a kind had 5 bits and a vlen 16; the others were 0. */
static unsigned int kind_of(const struct btf_type *type)
{
	return type->info >> 24 & 0x7f;
}

static uint32_t length_of(const struct btf_type *type)
{
	return type->info & 0xffffff;
}

/* --- the file */

static int file_read(struct btf_types *btf, int fd)
{
	unsigned char *bytes = memory_get(btf->file_bytes);
	size_t at = 0;
	ssize_t got = 1;

	while (at < btf->file_bytes && got > 0) {
		got = read(fd, bytes + at, btf->file_bytes - at);
		if (got > 0)
			at += (size_t)got;
	}
	if (got < 0) {
		free(bytes);
		return -errno;
	}
	btf->file = bytes;
	btf->file_bytes = at;
	return 0;
}

static int file_open(struct btf_types *btf, const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result = 0;
	struct stat stat;

	if (fd < 0 || fstat(fd, &stat)) {
		result = error_set(e, errno, EXIT_FAILED, "BTF file '%s' can't be read: %s", path,
				   strerror(errno));
		if (fd >= 0)
			close(fd);
		return result;
	}
	btf->file_bytes = (size_t)stat.st_size;
	/* an ELF file with debugging information is larger than what is read of it */
	btf->file = S_ISREG(stat.st_mode) && stat.st_size
			    ? mmap(NULL, btf->file_bytes, PROT_READ, MAP_PRIVATE, fd, 0)
			    : MAP_FAILED;
	btf->mapped = btf->file != MAP_FAILED;
	if (!S_ISREG(stat.st_mode) || (!btf->mapped && stat.st_size > BTF_BYTES_MAX))
		result = error_set(
			e, EINVAL, EXIT_FAILED,
			"'%s' is not a BTF file: it must be a regular file of at most 256 MB",
			path);
	else if (!btf->mapped) /* sysfs before 6.16 */
		result = file_read(btf, fd);
	if (result && !e->line[0])
		error_set(e, -result, EXIT_FAILED, "BTF file '%s' can't be read: %s", path,
			  strerror(-result));
	close(fd);
	return result;
}

/* --- what is in it */

/* Finds types and strings. NULL, or why this is no BTF. */
static const char *header_read(struct btf_types *btf, const struct elf_part *part)
{
	struct btf_start header = {0};
	uint64_t capacity;

	if (part->size < START_BYTES_MIN)
		return "it is too short";
	memcpy(&header, part->bytes, START_BYTES_MIN);
	if (header.magic == __builtin_bswap16(BTF_MAGIC))
		return "it is of a machine with the other byte order";
	if (header.magic != BTF_MAGIC)
		return "it does not begin as BTF does";
	if (header.version != BTF_VERSION)
		return "it is of a version that tsnap does not know";
	if (header.hdr_len < START_BYTES_MIN || header.hdr_len > part->size)
		return "its header is broken";
	if (header.hdr_len >= sizeof(header))
		memcpy(&header, part->bytes, sizeof(header));
	capacity = part->size - header.hdr_len;
	if ((uint64_t)header.type_off + header.type_len > capacity ||
	    (uint64_t)header.str_off + header.str_len > capacity ||
	    (uint64_t)header.layout_off + header.layout_len > capacity)
		return "it is cut off";
	btf->types = part->bytes + header.hdr_len + header.type_off;
	btf->types_bytes = header.type_len;
	btf->strings = (const char *)part->bytes + header.hdr_len + header.str_off;
	btf->strings_bytes = header.str_len;
	btf->kinds = part->bytes + header.hdr_len + header.layout_off;
	btf->kind_count = header.layout_len / (uint32_t)sizeof(struct kind_bytes);
	if (!header.str_len || btf->strings[header.str_len - 1])
		return "its names have no end";
	return NULL;
}

static void type_get(const struct btf_types *btf, uint32_t id, struct btf_type *type)
{
	memcpy(type, btf->types + btf->at[id], sizeof(*type));
}

/* Finds the bytes that follow a kind; false if neither this program nor the file knows it. */
static bool kind_find(const struct btf_types *btf, unsigned int number, struct kind_bytes *kind)
{
	if (!number || (number >= KIND_COUNT && number >= btf->kind_count))
		return false;
	if (number < KIND_COUNT)
		*kind = kind_bytes[number];
	else
		memcpy(kind, btf->kinds + number * sizeof(*kind), sizeof(*kind));
	return true;
}

/* Notes where each type begins. NULL, or what is wrong. */
static const char *types_index(struct btf_types *btf)
{
	uint32_t capacity = btf->types_bytes / sizeof(struct btf_type) + 1, at = 0;

	btf->at = memory_get((size_t)capacity * sizeof(*btf->at));
	btf->structs = memory_get((size_t)capacity * sizeof(*btf->structs));
	while (at < btf->types_bytes) {
		struct btf_type type;
		struct kind_bytes kind;
		uint64_t bytes = sizeof(type);

		if (btf->types_bytes - at < sizeof(type))
			return "its last type is cut off";
		memcpy(&type, btf->types + at, sizeof(type));
		if (!kind_find(btf, kind_of(&type), &kind))
			return "it has a kind of type that tsnap does not know";
		bytes += kind.once + (uint64_t)kind.each * length_of(&type);
		if (bytes > btf->types_bytes - at)
			return "a type in it is longer than the whole";
		btf->at[++btf->count] = at;
		if (kind_of(&type) == BTF_KIND_STRUCT)
			btf->structs[btf->struct_count++] = btf->count;
		at += (uint32_t)bytes;
	}
	return NULL;
}

int btf_types_open(struct btf_types *btf, const char *path, struct error *e)
{
	struct elf_part part;
	const char *wrong;
	int result;

	*btf = (struct btf_types){.file = MAP_FAILED};
	result = file_open(btf, path, e);
	if (result)
		return result;
	part = (struct elf_part){btf->file, btf->file_bytes};
	if (elf_is(btf->file, btf->file_bytes) &&
	    elf_section_find(btf->file, btf->file_bytes, ".BTF", &part))
		wrong = "it is an ELF file without BTF";
	else
		wrong = header_read(btf, &part);
	if (!wrong)
		wrong = types_index(btf);
	if (!wrong)
		return 0;
	btf_types_close(btf);
	return error_set(e, EINVAL, EXIT_FAILED,
			 "'%s' is not BTF that can be used: %s; give the vmlinux BTF of this "
			 "kernel, raw or in ELF",
			 path, wrong);
}

void btf_types_close(struct btf_types *btf)
{
	if (btf->mapped)
		munmap(btf->file, btf->file_bytes);
	else if (btf->file != MAP_FAILED)
		free(btf->file);
	free(btf->at);
	free(btf->structs);
	*btf = (struct btf_types){.file = MAP_FAILED};
}

/* --- structs */

static bool name_is(const struct btf_types *btf, uint32_t offset, const char *name)
{
	return offset < btf->strings_bytes && !strcmp(btf->strings + offset, name);
}

static uint32_t type_find(const struct btf_types *btf, unsigned int kind, const char *name)
{
	for (uint32_t id = 1; id <= btf->count; id++) {
		struct btf_type type;

		type_get(btf, id, &type);
		if (kind_of(&type) == kind && name_is(btf, type.name_off, name))
			return id;
	}
	return 0;
}

uint32_t btf_struct_find(const struct btf_types *btf, const char *name)
{
	for (uint32_t i = 0; i < btf->struct_count; i++) {
		struct btf_type type;

		type_get(btf, btf->structs[i], &type);
		if (name_is(btf, type.name_off, name))
			return btf->structs[i];
	}
	return 0;
}

uint32_t btf_function_find(const struct btf_types *btf, const char *name)
{
	return type_find(btf, BTF_KIND_FUNC, name);
}

struct search {
	const struct btf_types *btf;
	const char *name;
	uint32_t left; /* members that it may still look at */
};

static int64_t member_search(struct search *search, uint32_t id, int nesting)
{
	const struct btf_types *btf = search->btf;
	struct btf_type type;

	if (!id || id > btf->count)
		return -1;
	type_get(btf, id, &type);
	if (kind_of(&type) != BTF_KIND_STRUCT && kind_of(&type) != BTF_KIND_UNION)
		return -1;
	for (uint32_t i = 0; i < length_of(&type) && search->left; i++) {
		/* if this bit is set, the offset's high byte is the width of a bit-field */
		bool fields = type.info >> 31;
		struct btf_member member;
		uint32_t bits;
		int64_t inner;

		search->left--;
		memcpy(&member, btf->types + btf->at[id] + sizeof(type) + i * sizeof(member),
		       sizeof(member));
		bits = fields ? member.offset & 0xffffff : member.offset;
		if (name_is(btf, member.name_off, search->name))
			return bits % 8 || (fields && member.offset >> 24) ? -1
									   : (int64_t)(bits / 8);
		if (!name_is(btf, member.name_off, "") || nesting >= NESTING_MAX)
			continue;
		inner = member_search(search, member.type, nesting + 1);
		if (inner >= 0)
			return inner + bits / 8;
	}
	return -1;
}

int64_t btf_member_find(const struct btf_types *btf, uint32_t of, const char *name,
			unsigned int bytes)
{
	struct search search = {btf, name, MEMBERS_MAX};
	int64_t offset = member_search(&search, of, 0);
	struct btf_type type;

	if (offset < 0)
		return -1;
	type_get(btf, of, &type);
	return offset + bytes <= type.size ? offset : -1;
}

int64_t btf_offset_find(const struct btf_types *btf, const char *of, const char *member,
			unsigned int bytes)
{
	uint32_t id = btf_struct_find(btf, of);

	return id ? btf_member_find(btf, id, member, bytes) : -1;
}

uint32_t btf_struct_bytes(const struct btf_types *btf, const char *name)
{
	uint32_t id = btf_struct_find(btf, name);
	struct btf_type type;

	if (!id)
		return 0;
	type_get(btf, id, &type);
	return type.size;
}

/* --- the running kernel */

static struct btf_types kernel = {.file = MAP_FAILED};

int btf_kernel(const struct btf_types **btf, struct error *e)
{
	struct error unsaid = {0};
	int result = kernel.count ? 0 : btf_types_open(&kernel, KERNEL_BTF_PATH, e ? e : &unsaid);

	error_done(&unsaid);
	*btf = &kernel;
	return result;
}

void btf_kernel_forget(void)
{
	btf_types_close(&kernel);
}

int btf_tracepoint_id(const char *event)
{
	const struct btf_types *btf;
	char name[64];
	uint32_t id;
	int result = btf_kernel(&btf, NULL);

	if (result)
		return result;

	/* include/trace/bpf_probe.h makes a typedef of this name for each tracepoint */
	snprintf(name, sizeof(name), "btf_trace_%s", event);
	id = type_find(btf, BTF_KIND_TYPEDEF, name);
	return id && id <= INT32_MAX ? (int)id : -ENOENT;
}

#define TRACEPOINT_PREFIX "btf_trace_"

static const char *type_name(const struct btf_types *btf, const struct btf_type *type)
{
	return type->name_off < btf->strings_bytes ? btf->strings + type->name_off : "";
}

const char *btf_tracepoint_next(const struct btf_types *btf, uint32_t *id)
{
	while (*id < btf->count) {
		struct btf_type type;
		const char *name;

		type_get(btf, ++*id, &type);
		name = type_name(btf, &type);
		if (kind_of(&type) == BTF_KIND_TYPEDEF &&
		    !strncmp(name, TRACEPOINT_PREFIX, strlen(TRACEPOINT_PREFIX)))
			return name + strlen(TRACEPOINT_PREFIX);
	}
	return NULL;
}

const char *btf_function_next(const struct btf_types *btf, uint32_t *id)
{
	while (*id < btf->count) {
		struct btf_type type;

		type_get(btf, ++*id, &type);
		if (kind_of(&type) == BTF_KIND_FUNC)
			return type_name(btf, &type);
	}
	return NULL;
}

/* Returns the name of a parameter, from 0, of the function with that number; NULL: there is none.
 */
static const char *parameter_name(const struct btf_types *btf, uint32_t function,
				  unsigned int number)
{
	struct btf_param parameter;
	struct btf_type type;
	uint32_t id;

	if (!function)
		return NULL;
	type_get(btf, function, &type);
	id = type.type;
	if (!id || id > btf->count)
		return NULL;
	type_get(btf, id, &type);
	if (kind_of(&type) != BTF_KIND_FUNC_PROTO || number >= length_of(&type))
		return NULL;
	memcpy(&parameter, btf->types + btf->at[id] + sizeof(type) + number * sizeof(parameter),
	       sizeof(parameter));
	return parameter.name_off && parameter.name_off < btf->strings_bytes
		       ? btf->strings + parameter.name_off
		       : NULL;
}

const char *btf_function_argument(const struct btf_types *btf, const char *function,
				  unsigned int number)
{
	return parameter_name(btf, btf_function_find(btf, function), number - 1);
}

const char *btf_tracepoint_argument(const struct btf_types *btf, const char *event,
				    unsigned int number)
{
	char name[192];
	uint32_t id;

	/* the function that calls those who listen (5.10), or what calls a program (before); the
	 * first parameter is theirs */
	snprintf(name, sizeof(name), "__traceiter_%s", event);
	id = btf_function_find(btf, name);
	if (!id) {
		snprintf(name, sizeof(name), "__bpf_trace_%s", event);
		id = btf_function_find(btf, name);
	}
	return parameter_name(btf, id, number);
}
