/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program_export.h"
#include "program_file.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool names_map(const struct bpf_insn *instruction)
{
	return instruction->code == (BPF_LD | BPF_IMM | BPF_DW) &&
	       instruction->src_reg == BPF_PSEUDO_MAP_FD;
}

static int map_describe(int fd, struct program_map *map)
{
	struct bpf_map_info info = {0};
	uint32_t bytes = sizeof(info);

	if (bpf_obj_get_info(fd, &info, &bytes))
		return -errno;
	*map = (struct program_map){info.type, info.key_size, info.value_size, info.max_entries,
				    info.map_flags};
	return 0;
}

/* Replaces the descriptors in the instructions by indexes of maps. */
static int maps_collect(struct bpf_insn *instructions, size_t count, struct program_map *maps,
			uint32_t *map_count)
{
	int fds[PROGRAM_MAPS_MAX];
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		uint32_t at = 0;

		if (!names_map(&instructions[i]))
			continue;
		while (at < *map_count && fds[at] != instructions[i].imm)
			at++;
		if (at == PROGRAM_MAPS_MAX)
			return -E2BIG;
		if (at == *map_count) {
			fds[at] = instructions[i].imm;
			result = map_describe(fds[at], &maps[at]);
			(*map_count)++;
		}
		instructions[i].imm = (int32_t)at;
	}
	return result;
}

int program_export(FILE *to, const char *name, const struct probe_row *row, uint32_t since,
		   const struct bpf_insn *instructions, size_t count)
{
	struct program_entry entry = {.type = probe_program_types[row->kind],
				      .since = since,
				      .instruction_count = (uint32_t)count};
	struct program_map maps[PROGRAM_MAPS_MAX];
	struct bpf_insn *copy;
	int result;

	if (row->kind == PROBE_TYPED_TRACEPOINT)
		return 0;
	copy = malloc(count * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, instructions, count * sizeof(*copy));
	strncpy(entry.name, name, sizeof(entry.name) - 1);
	result = maps_collect(copy, count, maps, &entry.map_count);
	if (!result && (fwrite(&entry, sizeof(entry), 1, to) != 1 ||
			fwrite(maps, sizeof(maps[0]), entry.map_count, to) != entry.map_count ||
			fwrite(copy, sizeof(*copy), count, to) != count || fflush(to)))
		result = -EIO;
	free(copy);
	return result;
}
