/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/tls.h"
#include "apps/app_program.h"

#include <string.h>

#define NUMBERS_MAX 65536
#define LISTS_MAX 64
#define LIST_ROWS_MAX 1024
#define ROWS_AHEAD 16	    /* of a vector, which are read at once */
#define NOT_MADE UINT64_MAX /* TLS_DTV_UNALLOCATED of glibc */

/* Address of the vector's address, from the thread pointer. */
#if defined(__aarch64__)
#define VECTOR(musl) ((musl) ? -8 : 0)
/* blocks at a distance are above the thread pointer; programs are linked at higher addresses */
#define IS_DISTANCE(argument) ((argument) < 0x400000)
#else
#define VECTOR(musl) 8
#define IS_DISTANCE(argument) ((int64_t)(argument) < 0) /* they are below it */
#endif

/* How libthread_db describes a member: its size in bits, how many there are, its offset. */
struct member {
	uint32_t bits, count, offset;
};

/* A row of the list: the module, a struct link_map, begins with the distance of its addresses. */
struct list_row {
	uint64_t generation, map;
};

/* Finds a variable that one of the files exports whose names begin so. */
static uint64_t exported_find(struct app_reader *reader, const struct app_modules *modules,
			      struct cache *known, const char *begin, const char *name)
{
	struct elf_variable variable;
	uint64_t distance;

	for (size_t i = 0; i < modules->count; i++)
		if (!strncmp(strrchr(modules->files[i].path, '/') + 1, begin, strlen(begin)) &&
		    app_variable_find(known, reader, &modules->files[i], name, true, &variable,
				      &distance))
			return variable.address + distance;
	return 0;
}

void tls_linker_find(struct app_reader *reader, const struct app_modules *modules,
		     struct cache *known, struct tls_linker *linker)
{
	static const char musl_name[] = "_dl_debug_addr", data_name[] = "_rtld_global";
	static const char member_name[] = "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list";
	uint64_t data, description;
	struct member member;

	*linker = (struct tls_linker){0};
	linker->musl = exported_find(reader, modules, known, "ld-", musl_name) ||
		       exported_find(reader, modules, known, "libc", musl_name);
	data = exported_find(reader, modules, known, "ld-", data_name);
	linker->glibc = data && !linker->musl;
	/* libc.so.6, libc-2.31.so; before 2.34 it is libpthread's */
	description = data ? exported_find(reader, modules, known, "libc", member_name) : 0;
	if (data && !description)
		description = exported_find(reader, modules, known, "libpthread", member_name);
	if (app_read(reader, description, &member, sizeof(member)) && member.bits == 64)
		linker->list = data + member.offset;
}

/* Finds the module with addresses at that distance: *number, unless that is given, and from which
 * generation on it has the number. */
static bool module_find(struct app_reader *reader, uint64_t list, uint64_t distance,
			uint64_t *number, uint64_t *generation)
{
	uint64_t first = 0, head[2], at, of_map; /* head: length, and address of the next list */
	struct list_row row;

	if (!app_read(reader, list, &at, sizeof(at)))
		return false;
	for (int lists = 0; at && lists < LISTS_MAX; lists++, first += head[0], at = head[1]) {
		if (!app_read(reader, at, head, sizeof(head)) || head[0] > LIST_ROWS_MAX)
			return false;
		for (uint64_t i = 0; i < head[0]; i++) {
			if ((*number && first + i != *number) ||
			    !app_read(reader, at + sizeof(head) + i * sizeof(row), &row,
				      sizeof(row)) ||
			    !row.map || !app_read(reader, row.map, &of_map, sizeof(of_map)) ||
			    of_map != distance)
				continue;
			*number = first + i;
			*generation = row.generation;
			return *number;
		}
	}
	return false;
}

static bool distance_is_small(int64_t distance)
{
	return distance == (int32_t)distance;
}

/* A descriptor's argument is a distance, or the address of the module's number, the variable's
 * place in the block and, with glibc, the vectors' generation (struct tlsdesc_dynamic_arg). */
static void descriptor_take(struct app_reader *reader, uint64_t argument,
			    const struct elf_variable *variable, struct tls_place *place)
{
	uint64_t words[3] = {0};

	if (IS_DISTANCE(argument)) {
		place->offset = (int64_t)argument + variable->from_slot;
		place->found = distance_is_small(place->offset);
	} else if (app_read(reader, argument, words, place->musl ? 16 : 24)) {
		place->module = words[0];
		place->offset = (int64_t)words[1] + variable->from_slot;
		place->generation = words[2];
		place->found = words[0] && (uint64_t)place->offset == variable->address;
	}
}

/* Takes what the dynamic linker has left in the words of a relocation. */
static void slot_take(struct app_reader *reader, const struct elf_variable *variable,
		      uint64_t distance, struct tls_place *place)
{
	uint64_t words[2];

	if (!variable->slot_kind ||
	    !app_read(reader, variable->slot + distance, words, sizeof(words)))
		return;
	switch (variable->slot_kind) {
	case SLOT_OFFSET:
		/* 0: the dynamic linker has not come that far */
		place->offset = (int64_t)words[0] + variable->from_slot;
		place->found = words[0] && distance_is_small((int64_t)words[0]);
		break;
	case SLOT_MODULE:
	case SLOT_PAIR:
		/* another place: the variable is another module's, whose symbol came first */
		place->module = words[0];
		place->offset = (int64_t)variable->address;
		place->found = words[0] && (variable->slot_kind == SLOT_MODULE ||
					    words[1] == variable->address);
		break;
	case SLOT_DESCRIPTOR:
		descriptor_take(reader, words[1], variable, place);
		break;
	default:
		break;
	}
}

void tls_place_find(struct app_reader *reader, const struct elf_variable *variable,
		    uint64_t distance, bool program, const struct tls_linker *linker,
		    struct tls_place *place)
{
	*place = (struct tls_place){.musl = linker->musl};
	if (program) {
		place->offset = variable->block_at + (int64_t)variable->address;
		place->found = distance_is_small(place->offset);
		return;
	}
	slot_take(reader, variable, distance, place);
	if (linker->list && (!place->found || place->module)) {
		if (!place->found)
			*place = (struct tls_place){.offset = (int64_t)variable->address};
		place->found = module_find(reader, linker->list, distance, &place->module,
					   &place->generation);
	}
	place->found = place->found && place->module < NUMBERS_MAX &&
		       (!place->module || linker->glibc || linker->musl);
}

uint64_t tls_address(struct app_reader *reader, const struct tls_place *place, uint64_t pointer)
{
	/* before the first row are the number of rows; in the first row, its generation */
	uint64_t vector, begin[3 + 2 * ROWS_AHEAD], block;
	size_t got;

	if (!place->found || !pointer)
		return 0;
	if (!place->module)
		return pointer + (uint64_t)place->offset;
	if (!app_read(reader, pointer + (uint64_t)VECTOR(place->musl), &vector, sizeof(vector)))
		return 0;
	if (place->musl) {
		if (!app_read(reader, vector, begin, sizeof(begin[0])) ||
		    place->module > begin[0] ||
		    !app_read(reader, vector + 8 * place->module, &block, sizeof(block)))
			return 0;
		return block ? block + (uint64_t)place->offset : 0;
	}
	got = app_read_some(reader, vector - 16, begin, sizeof(begin)) / sizeof(begin[0]);
	if (got < 3 || place->module > begin[0] || begin[2] < place->generation)
		return 0;
	if (2 + 2 * place->module < got)
		block = begin[2 + 2 * place->module];
	else if (!app_read(reader, vector + 16 * place->module, &block, sizeof(block)))
		return 0;
	return block && block != NOT_MADE ? block + (uint64_t)place->offset : 0;
}
