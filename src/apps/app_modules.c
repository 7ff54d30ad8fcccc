/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/app_modules.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "keeper/avoid.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096
#define MAPS_BYTES_MAX (16u << 20)
#define DELETED " (deleted)"
/* After this time a file is read again: its inode may be another file's by then. */
#define VARIABLE_OLD_NS (60 * NS_PER_SECOND)

struct known_variable {
	struct cache_entry entry; /* key: hash of what follows */
	const char *name;
	uint64_t device, inode, offset;
	int64_t read_ns;
	struct timespec changed; /* of the file */
	struct file_variable_answer answer;
};

size_t app_name_length(const char *name)
{
	size_t length = strlen(name), end = strlen(DELETED);

	return length > end && !strcmp(name + length - end, DELETED) ? length - end : length;
}

static void line_take(void *of, char *line)
{
	struct app_modules *modules = of;
	const struct mapping *last = modules->count ? &modules->files[modules->count - 1] : NULL;
	struct mapping mapping;
	char *path;

	if (!mapping_parse(line, &mapping, &path))
		return;
	if (!modules->marked && modules->is_marked(path))
		modules->marked = mapping.start;
	if (*path != '/' || !mapping.inode || modules->count == FILES_MAX ||
	    (last && last->inode == mapping.inode && last->device == mapping.device))
		return;
	modules->files = memory_grow(modules->files, &modules->capacity, modules->count + 1,
				     sizeof(*modules->files));
	mapping.path = memory_text(path, strlen(path));
	if (modules->program == SIZE_MAX && !strcmp(path, modules->program_path))
		modules->program = modules->count;
	modules->files[modules->count++] = mapping;
}

bool app_modules_read(struct app_modules *modules, bool (*is_marked)(const char *path),
		      const char *proc_root, int64_t pid, int64_t tid)
{
	int fd, err;

	*modules = (struct app_modules){.program = SIZE_MAX, .is_marked = is_marked};
	if (avoids_memory(tid) || proc_link_read(proc_root, pid, tid, "exe", modules->program_path,
						 sizeof(modules->program_path)) <= 0)
		return false;
	fd = proc_file_open(proc_root, pid, tid, "maps");
	if (fd < 0)
		return false;
	err = lines_each(fd, MAPS_BYTES_MAX, line_take, modules);
	close(fd);
	return !err && modules->count;
}

void app_modules_done(struct app_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		free(modules->files[i].path);
	free(modules->files);
	*modules = (struct app_modules){.count = 0};
}

void app_variables_init(struct cache *variables)
{
	*variables = (struct cache){.entry_bytes = sizeof(struct known_variable),
				    .entries_max = APP_VARIABLES_MAX};
}

/* Reads what is known anew. fd: of the file. */
static void variable_read(struct known_variable *known, struct parser *parser, int fd,
			  const struct stat *stat, bool exported, int64_t now_ns)
{
	const struct elf_file elf = {.fd = fd, .bytes = (uint64_t)stat->st_size};

	known->changed = stat->st_ctim;
	known->read_ns = now_ns;
	if (!file_variable_request(parser, &elf, known->name, exported, known->offset,
				   &known->answer))
		return;
	known->answer = (struct file_variable_answer){.is_elf = false};
	known->read_ns = 0;
}

bool app_variable_find(struct cache *variables, struct app_reader *reader,
		       const struct mapping *file, const char *name, bool exported,
		       struct elf_variable *variable, uint64_t *distance)
{
	int64_t now_ns = reader->now_ns;
	struct known_variable *known;
	struct stat stat;
	bool added;
	int fd;

	known = cache_get(variables,
			  hash_u64(file->device ^ hash_u64(file->inode)) ^
				  hash_u64(file->offset ^ hash_bytes(name, strlen(name))),
			  now_ns, &added);
	if (known->name != name || known->device != file->device || known->inode != file->inode ||
	    known->offset != file->offset)
		*known = (struct known_variable){.entry = known->entry,
						 .name = name,
						 .device = file->device,
						 .inode = file->inode,
						 .offset = file->offset};
	else if (known->read_ns && now_ns - known->read_ns < VARIABLE_OLD_NS &&
		 !known->answer.variable.found)
		return false;
	fd = app_file_open(reader, file);
	if (fd < 0)
		return false;
	if (fstat(fd, &stat)) {
		close(fd);
		return false;
	}
	if (!known->read_ns || now_ns - known->read_ns >= VARIABLE_OLD_NS ||
	    memcmp(&stat.st_ctim, &known->changed, sizeof(stat.st_ctim)) != 0)
		variable_read(known, app_parser(reader), fd, &stat, exported, now_ns);
	close(fd);
	if (!known->answer.is_mapped || !known->answer.variable.found)
		return false;
	*variable = known->answer.variable;
	*distance = file->start - known->answer.mapped;
	return true;
}
