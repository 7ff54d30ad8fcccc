/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/program_set.h"
#include "base/index.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"
#include "kernel/bpf_cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SET_MAGIC "tsnapBP1"
#define INSTRUCTIONS_MAX (1u << 16)

struct set_head {
	char magic[8];
	uint64_t bytes;	   /* length of what follows */
	uint64_t checksum; /* hash_bytes() of that */
};

struct set_body {
	char kernel[KERNEL_BUILD_SIZE];
	uint64_t wanted, how, text;
	char types_source[32];
	uint32_t near_threads, sets, map_count, program_count;
	uint32_t offset[FIELD_MAX];
	unsigned char name[FIELD_MAX], lacking[FIELD_MAX];
};

static uint32_t unit_size(uint32_t unit, uint32_t threads, uint32_t cpus)
{
	return unit == ENTRIES_PER_THREAD ? threads : unit == ENTRIES_PER_CPU ? cpus : 1;
}

/* Both halves of a 64-bit constant are instructions: the second one is data. */
static bool is_constant(const struct bpf_insn *instruction)
{
	return instruction->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* --- bytes */

static void body_fill(const struct program_set *set, struct set_body *body)
{
	memset(body, 0, sizeof(*body));
	memcpy(body->kernel, set->kernel, sizeof(body->kernel));
	memcpy(body->types_source, set->types_source, sizeof(body->types_source));
	body->wanted = set->wanted;
	body->how = set->how;
	body->text = set->text;
	body->near_threads = set->near_threads;
	body->sets = set->layout.sets;
	body->map_count = set->map_count;
	body->program_count = set->program_count;
	for (size_t i = 0; i < field_count; i++) {
		body->offset[i] = set->layout.offset[i];
		body->name[i] = set->layout.name[i];
		body->lacking[i] = set->layout.lacking[i];
	}
}

void program_set_write(const struct program_set *set, struct text *to)
{
	struct set_head head = {.magic = SET_MAGIC};
	struct set_body body;
	size_t start = to->length, from = start + sizeof(head);

	body_fill(set, &body);
	text_add(to, (const char *)&head, sizeof(head));
	text_add(to, (const char *)&body, sizeof(body));
	text_add(to, (const char *)set->maps, set->map_count * sizeof(set->maps[0]));
	for (uint32_t i = 0; i < set->program_count; i++) {
		text_add(to, (const char *)&set->programs[i], sizeof(set->programs[i]));
		text_add(to, (const char *)set->instructions[i],
			 set->programs[i].count * sizeof(struct bpf_insn));
	}
	head.bytes = to->length - from;
	head.checksum = hash_bytes(to->bytes + from, to->length - from);
	memcpy(to->bytes + start, &head, sizeof(head));
}

struct bytes {
	const char *at;
	size_t left;
};

/* Takes the next bytes; false: there are not as many. */
static bool bytes_take(struct bytes *bytes, void *to, size_t count)
{
	if (count > bytes->left)
		return false;
	if (count)
		memcpy(to, bytes->at, count);
	bytes->at += count;
	bytes->left -= count;
	return true;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static bool layout_take(const struct set_body *body, struct field_layout *layout)
{
	struct error unsaid = {0};
	int result;

	layout->sets = body->sets;
	for (size_t i = 0; i < field_count; i++) {
		if (body->name[i] >= FIELD_NAMES_MAX || !field_rows[i].names[body->name[i]] ||
		    body->lacking[i] > 1)
			return false;
		layout->name[i] = body->name[i];
		layout->offset[i] = body->offset[i];
		layout->lacking[i] = body->lacking[i];
	}
	result = field_layout_check(layout, "", &unsaid);
	error_done(&unsaid);
	return !result;
}

static bool body_take(struct bytes *bytes, struct program_set *set)
{
	struct set_body body;

	if (!bytes_take(bytes, &body, sizeof(body)) || !ends(body.kernel, sizeof(body.kernel)) ||
	    !ends(body.types_source, sizeof(body.types_source)) ||
	    body.map_count > PROGRAM_MAPS_MAX || body.program_count > GROUP_COUNT)
		return false;
	memcpy(set->kernel, body.kernel, sizeof(set->kernel));
	memcpy(set->types_source, body.types_source, sizeof(set->types_source));
	set->wanted = body.wanted;
	set->how = body.how;
	set->text = body.text;
	set->near_threads = body.near_threads;
	set->map_count = body.map_count;
	/* programs are counted as they are read, for program_set_done() */
	return layout_take(&body, &set->layout) &&
	       bytes_take(bytes, set->maps, set->map_count * sizeof(set->maps[0]));
}

static bool maps_sound(const struct program_set *set)
{
	for (uint32_t i = 0; i < set->map_count; i++)
		if (!ends(set->maps[i].name, sizeof(set->maps[i].name)) || !set->maps[i].entries ||
		    set->maps[i].unit >= MAP_UNIT_COUNT)
			return false;
	return true;
}

/* True if every constant is whole, and is a number or one of the maps: another kind would be a
 * descriptor or a number of the kernel that wrote it. */
static bool instructions_sound(const struct bpf_insn *instructions, uint32_t count, uint32_t maps)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct bpf_insn *at = &instructions[i];

		if (!is_constant(at))
			continue;
		if (++i == count || (at->src_reg && at->src_reg != BPF_PSEUDO_MAP_FD) ||
		    (at->src_reg && (at->imm < 0 || (uint32_t)at->imm >= maps)))
			return false;
	}
	return true;
}

static bool program_take(struct bytes *bytes, struct program_set *set)
{
	struct set_program *program = &set->programs[set->program_count];
	struct bpf_insn **instructions = &set->instructions[set->program_count];

	if (!bytes_take(bytes, program, sizeof(*program)) ||
	    !ends(program->function, sizeof(program->function)) || !program->count ||
	    program->count > INSTRUCTIONS_MAX ||
	    program->count * sizeof(struct bpf_insn) > bytes->left)
		return false;
	*instructions = memory_get(program->count * sizeof(struct bpf_insn));
	set->program_count++;
	return bytes_take(bytes, *instructions, program->count * sizeof(struct bpf_insn)) &&
	       instructions_sound(*instructions, program->count, set->map_count);
}

int program_set_read(const void *bytes, size_t length, struct program_set *set, size_t *used)
{
	struct bytes rest = {bytes, length};
	struct set_head head;
	uint32_t programs;
	bool sound;

	*set = (struct program_set){.map_count = 0};
	if (!bytes_take(&rest, &head, sizeof(head)) ||
	    memcmp(head.magic, SET_MAGIC, sizeof(head.magic)) != 0 || head.bytes > rest.left ||
	    head.bytes > PROGRAM_SET_BYTES_MAX || head.bytes < sizeof(struct set_body) ||
	    hash_bytes(rest.at, head.bytes) != head.checksum)
		return -EINVAL;
	rest.left = head.bytes;
	memcpy(&programs, rest.at + offsetof(struct set_body, program_count), sizeof(programs));
	sound = body_take(&rest, set) && maps_sound(set);
	while (sound && set->program_count < programs)
		sound = program_take(&rest, set);
	if (!sound || rest.left) {
		program_set_done(set);
		return -EINVAL;
	}
	*used = sizeof(head) + head.bytes;
	return 0;
}

void program_set_done(struct program_set *set)
{
	for (uint32_t i = 0; i < set->program_count; i++)
		free(set->instructions[i]);
	*set = (struct program_set){.map_count = 0};
}

/* --- a compiled module */

/* Describes a map that is there. False: it can't be made again elsewhere. */
static bool map_describe(int fd, const char *name, uint32_t threads, uint32_t cpus,
			 struct set_map *map)
{
	static const char *const keys[] = {
		"map_type:", "key_size:", "value_size:", "map_flags:", "max_entries:"};
	int64_t numbers[5];
	uint32_t size;

	memset(map, 0, sizeof(*map));
	memcpy(map->name, name, strnlen(name, sizeof(map->name) - 1));
	for (size_t i = 0; i < 5; i++) {
		numbers[i] = bpf_fdinfo_number(fd, keys[i]);
		if (numbers[i] < 0 || numbers[i] > UINT32_MAX)
			return false;
	}
	for (size_t i = 0; i < KERNEL_MAP_COUNT; i++)
		if (!strcmp(kernel_map_rows[i].name, name))
			map->unit = kernel_map_rows[i].unit;
	size = unit_size(map->unit, threads, cpus);
	map->type = (uint32_t)numbers[0];
	map->key_bytes = (uint32_t)numbers[1];
	map->value_bytes = (uint32_t)numbers[2];
	map->flags = (uint32_t)numbers[3];
	map->entries = (uint32_t)numbers[4] / size;
	return strlen(name) < sizeof(map->name) && map->entries &&
	       map->entries * (uint64_t)size == (uint64_t)numbers[4];
}

/* Replaces descriptors by indexes. False: one is of no map of the module. */
static bool references_take(struct bpf_insn *instructions, uint32_t count, const int *fds,
			    uint32_t maps)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 0;

		if (!is_constant(&instructions[i]))
			continue;
		if (instructions[i].src_reg == BPF_PSEUDO_MAP_FD) {
			while (at < maps && fds[at] != instructions[i].imm)
				at++;
			if (at == maps)
				return false;
			instructions[i].imm = (int32_t)at;
		}
		i++;
	}
	return true;
}

int program_set_take(const struct bcc_library *bcc, void *module, const struct probe_plan *plan,
		     uint32_t threads, uint32_t cpus, struct program_set *set, int *fds,
		     bool *keepable, const struct probe_row **missing)
{
	size_t tables = bcc->bpf_num_tables(module);

	if (tables > PROGRAM_MAPS_MAX)
		return -E2BIG;
	set->map_count = (uint32_t)tables;
	*keepable = true;
	for (uint32_t i = 0; i < set->map_count; i++) {
		fds[i] = bcc->bpf_table_fd_id(module, i);
		*keepable &= map_describe(fds[i], bcc->bpf_table_name(module, i), threads, cpus,
					  &set->maps[i]);
	}
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = plan->chosen[group];
		uint32_t at = set->program_count;
		struct set_program *program = &set->programs[at];
		const void *from = row ? bcc->bpf_function_start(module, row->function) : NULL;
		size_t bytes = from ? bcc->bpf_function_size(module, row->function) : 0;

		if (!row || program_set_program(set, row->function) >= 0)
			continue;
		*missing = row;
		if (!bytes)
			return -ENOENT;
		memcpy(program->function, row->function,
		       strnlen(row->function, sizeof(program->function) - 1));
		program->count = (uint32_t)(bytes / sizeof(struct bpf_insn));
		set->instructions[at] = memory_get(bytes);
		memcpy(set->instructions[at], from, bytes);
		set->program_count++;
		if (!references_take(set->instructions[at], program->count, fds, set->map_count))
			return -ENOENT;
		*keepable &=
			instructions_sound(set->instructions[at], program->count, set->map_count);
	}
	return 0;
}

/* --- maps and programs */

int program_set_maps_make(const struct program_set *set, uint32_t threads, uint32_t cpus,
			  const int *given, int *fds, const struct set_map **failed)
{
	int result = 0;

	for (uint32_t i = 0; i < PROGRAM_MAPS_MAX; i++)
		fds[i] = -1;
	for (uint32_t i = 0; result >= 0 && i < set->map_count; i++) {
		const struct set_map *map = &set->maps[i];
		const uint64_t entries =
			(uint64_t)map->entries * unit_size(map->unit, threads, cpus);

		*failed = map;
		result = given[i] >= 0		? given[i]
			 : entries > UINT32_MAX ? -E2BIG
						: bpf_call_map_described(&(struct bpf_map_made){
							  .name = map->name,
							  .type = map->type,
							  .key_bytes = map->key_bytes,
							  .value_bytes = map->value_bytes,
							  .entries = (uint32_t)entries,
							  .flags = map->flags});
		fds[i] = result;
	}
	for (uint32_t i = 0; result < 0 && i < set->map_count; i++) {
		if (fds[i] >= 0 && given[i] < 0)
			close(fds[i]);
		fds[i] = -1;
	}
	return result < 0 ? result : 0;
}

int program_set_map(const struct program_set *set, const char *name)
{
	for (uint32_t i = 0; i < set->map_count; i++)
		if (!strcmp(set->maps[i].name, name))
			return (int)i;
	return -1;
}

int program_set_program(const struct program_set *set, const char *function)
{
	for (uint32_t i = 0; i < set->program_count; i++)
		if (!strcmp(set->programs[i].function, function))
			return (int)i;
	return -1;
}

void program_set_refer(struct program_set *set, const int *fds)
{
	for (uint32_t program = 0; program < set->program_count; program++)
		for (uint32_t i = 0; i < set->programs[program].count; i++) {
			struct bpf_insn *at = &set->instructions[program][i];

			if (!is_constant(at))
				continue;
			if (at->src_reg == BPF_PSEUDO_MAP_FD)
				at->imm = fds[at->imm];
			i++;
		}
}
