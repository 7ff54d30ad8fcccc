/* SPDX-License-Identifier: GPL-2.0-or-later */
/* program_loader [-v] FILE...: has the running kernel's verifier check every program of the files
 * that text_check --export wrote, if this kernel may get it. A refused program is printed with the
 * end of the verifier's log. -v: prints for each program the number of instructions that the
 * verifier visited. The last line is the sum: N passed, N failed, N skipped. */
#include "kernel/bpf_call.h"
#include "kernel/host.h"
#include "program_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOG_BYTES ((16u << 20) - 1) /* a longer log is refused before 5.2 */
#define LOG_SHOWN 1500
#define INSTRUCTIONS_MAX (1u << 16)
#define KINDS_MAX 256

static int passed, failed, skipped;

/* Maps that programs of one file share: nothing is written to them. */
static struct {
	struct program_map map;
	int fd;
} made[KINDS_MAX];
static size_t made_count;

static int map_fd(const struct program_map *map)
{
	size_t at = 0;

	while (at < made_count && memcmp(&made[at].map, map, sizeof(*map)) != 0)
		at++;
	if (at == KINDS_MAX)
		return -E2BIG;
	if (at == made_count) {
		made[at].map = *map;
		made[at].fd = bpf_call_map((enum bpf_map_type)map->type, map->key_bytes,
					   map->value_bytes, map->entries);
		made_count++;
	}
	return made[at].fd;
}

/* Replaces the map's index in instructions by a descriptor. */
static int maps_name(struct bpf_insn *instructions, uint32_t count, const struct program_map *maps)
{
	for (uint32_t i = 0; i < count; i++) {
		int fd;

		if (instructions[i].code != (BPF_LD | BPF_IMM | BPF_DW) ||
		    instructions[i].src_reg != BPF_PSEUDO_MAP_FD)
			continue;
		fd = map_fd(&maps[instructions[i].imm]);
		if (fd < 0)
			return fd;
		instructions[i].imm = fd;
	}
	return 0;
}

/* Reads the log's last line, "processed 1234 insns (limit 131072), stack depth 88"; 0: not
 * there. */
static long visited_read(const char *log)
{
	const char *at = log, *last = NULL;

	while ((at = strstr(at, "processed ")))
		last = at++;
	return last ? strtol(last + strlen("processed "), NULL, 10) : 0;
}

static void refusal_tell(const char *name, int result, const char *log)
{
	size_t length = strlen(log);

	failed++;
	printf("FAILED: %s: %s\n%s\n", name, strerror(-result),
	       log + (length > LOG_SHOWN ? length - LOG_SHOWN : 0));
}

static void program_judge(const struct program_entry *entry, const struct bpf_insn *instructions,
			  bool reported)
{
	static char log[LOG_BYTES + 1];
	int fd = bpf_call_load((enum bpf_prog_type)entry->type, instructions,
			       entry->instruction_count);
	int refused = fd < 0 ? fd : 0;

	if (fd >= 0)
		close(fd);
	if (refused || reported) {
		log[0] = 0;
		fd = bpf_call_load_described(
			&(struct bpf_load){.type = (enum bpf_prog_type)entry->type,
					   .instructions = instructions,
					   .count = entry->instruction_count,
					   .log = log,
					   .log_size = LOG_BYTES});
		if (fd >= 0)
			close(fd);
	}
	if (reported)
		printf("%ld visited of %u: %s\n", visited_read(log), entry->instruction_count,
		       entry->name);
	if (refused)
		refusal_tell(entry->name, refused, log);
	else
		passed++;
}

/* Loads the next program. 1: there was one; 0: the file's end; -errno. */
static int program_next(FILE *from, uint32_t release, bool reported)
{
	static struct bpf_insn instructions[INSTRUCTIONS_MAX];
	struct program_map maps[PROGRAM_MAPS_MAX];
	struct program_entry entry;
	int result;

	if (fread(&entry, sizeof(entry), 1, from) != 1)
		return feof(from) ? 0 : -EIO;
	if (entry.map_count > PROGRAM_MAPS_MAX || entry.instruction_count > INSTRUCTIONS_MAX ||
	    fread(maps, sizeof(maps[0]), entry.map_count, from) != entry.map_count ||
	    fread(instructions, sizeof(instructions[0]), entry.instruction_count, from) !=
		    entry.instruction_count)
		return -EINVAL;
	if (entry.since > release) {
		skipped++;
		return 1;
	}
	result = maps_name(instructions, entry.instruction_count, maps);
	if (result)
		return result;
	program_judge(&entry, instructions, reported);
	return 1;
}

static void file_judge(const char *path, uint32_t release, bool reported)
{
	FILE *file = fopen(path, "re");
	int result = file ? 0 : -errno;

	do
		result = file ? program_next(file, release, reported) : result;
	while (result > 0);
	if (result) {
		failed++;
		printf("FAILED: %s: %s\n", path, strerror(-result));
	}
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	bool reported = argc > 1 && !strcmp(argv[1], "-v");
	struct host host;
	uint32_t code;

	if (argc < 2 + reported) {
		fprintf(stderr, "usage: program_loader [-v] FILE...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* maps count against the limit up to 5.10 */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	host_read(&host);
	code = version_code_of_release(host.release);
	for (int i = 1 + reported; i < argc; i++)
		file_judge(argv[i], code >> 8, reported);
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed || !passed;
}
