/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/golang.h"
#include "apps/app_program.h"
#include "base/names.h"
#include "base/text.h"
#include "unwind/file_request.h"
#include "unwind/go_labels.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NUMBER 0 /* by which the parser knows the file, until it forgets it */

/* struct g, the same since Go 1.13 as far as the address of itself, which is after 1.24, too, at
 * one of two places: sched has lost a member behind it. */
#define G_BYTES 80
#define G_STACK_LOW 0
#define G_STACK_HIGH 1 /* in words, as the others */
#define G_M 6
#define G_SELF 9
/* struct m: curg is near this word, behind the thread's copy of its storage */
#define M_G0 0
#define M_CURRENT_FIRST 20
#define M_CURRENT_LAST 27
#define M_WORDS (M_CURRENT_LAST + 1)

#define STACK_BYTES_MAX (UINT64_C(1) << 30)

struct known_file {
	struct cache_entry entry; /* key: hash of device and inode */
	uint64_t device, inode;
	struct timespec changed;
	struct golang golang;
};

void golang_init(struct cache *files)
{
	*files = (struct cache){.entry_bytes = sizeof(struct known_file),
				.entries_max = GOLANG_FILES_MAX};
}

/* False: it is not known now. */
static bool file_read(struct golang *golang, struct parser *parser, struct elf_file *elf)
{
	struct file_go_answer answer;
	int err = file_head_request(parser, elf);

	*golang = (struct golang){.labelled = false};
	if (!err)
		err = file_go_request(parser, FILE_NUMBER, elf, &answer);
	if (err)
		return err == -ENOEXEC;
	file_drop(parser, FILE_NUMBER);
	golang->labelled = answer.is_go && answer.program.labels_at;
	golang->listed = answer.program.labels_listed;
	golang->g_at = answer.program.g_at;
	golang->labels_at = answer.program.labels_at;
	return true;
}

const struct golang *golang_find(struct app_reader *reader, const struct app_modules *modules,
				 struct cache *files)
{
	struct elf_file elf = {.fd = -1};
	struct known_file *known;
	struct stat stat;
	bool added;

	if (modules->program == SIZE_MAX)
		return NULL;
	elf.fd = app_file_open(reader, &modules->files[modules->program]);
	if (elf.fd < 0 || fstat(elf.fd, &stat)) {
		if (elf.fd >= 0)
			close(elf.fd);
		return NULL;
	}
	known = cache_get(files, hash_u64(hash_u64((uint64_t)stat.st_dev) ^ (uint64_t)stat.st_ino),
			  reader->now_ns, &added);
	if (known->device != (uint64_t)stat.st_dev || known->inode != (uint64_t)stat.st_ino ||
	    memcmp(&known->changed, &stat.st_mtim, sizeof(stat.st_mtim)) != 0) {
		elf.bytes = (uint64_t)stat.st_size;
		known->device = (uint64_t)stat.st_dev;
		known->inode = file_read(&known->golang, app_parser(reader), &elf)
				       ? (uint64_t)stat.st_ino
				       : 0;
		known->changed = stat.st_mtim;
	}
	close(elf.fd);
	return known->golang.labelled ? &known->golang : NULL;
}

/* Reads the first words of a g. False: there is none. */
static bool g_read(struct app_reader *reader, uint64_t address,
		   uint64_t words[G_BYTES / sizeof(uint64_t)])
{
	return address && address % sizeof(uint64_t) == 0 &&
	       app_read(reader, address, words, G_BYTES) && words[G_SELF] == address &&
	       words[G_M] && words[G_STACK_LOW] < words[G_STACK_HIGH] &&
	       words[G_STACK_HIGH] - words[G_STACK_LOW] <= STACK_BYTES_MAX;
}

/* Finds the goroutine that a thread runs; 0: none, or it was not found. */
static uint64_t g_find(struct app_reader *reader, const struct golang *golang, uint64_t pointer)
{
	uint64_t g, own[G_BYTES / sizeof(g)], other[G_BYTES / sizeof(g)], m[M_WORDS];

	if (!pointer || !app_read(reader, pointer + (uint64_t)golang->g_at, &g, sizeof(g)) ||
	    !g_read(reader, g, own) || !app_read(reader, own[G_M], m, sizeof(m)))
		return 0;
	if (m[M_G0] != g)
		return g;
	for (int i = M_CURRENT_FIRST; i <= M_CURRENT_LAST; i++)
		if (m[i] != g && g_read(reader, m[i], other) && other[G_M] == own[G_M])
			return m[i];
	return 0;
}

static bool memory_read(void *of, uint64_t address, void *to, size_t bytes)
{
	return app_read(of, address, to, bytes);
}

const char *golang_labels(struct app_reader *reader, const struct golang *golang, uint64_t pointer)
{
	static struct text text;
	const struct go_labels_source source = {
		.listed = golang->listed, .read = memory_read, .of = reader};
	uint64_t g = g_find(reader, golang, pointer), address;

	text_clear(&text);
	return g && app_read(reader, g + golang->labels_at, &address, sizeof(address)) &&
			       go_labels_add(&source, address, &text)
		       ? name_transient(text.bytes, text.length)
		       : NULL;
}
