/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/runtime_find.h"
#include "base/clock.h"
#include "unwind/file_request.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4		     /* files with such names that are read, of one process */
#define LOOK_SHARE 1000		     /* divisor of the time for looking in one process */
#define LOOK_SCAN_NS (2 * NS_PER_MS) /* time in one scan, for all processes; others come later */

static bool has_name(const struct mapping *mapping, const struct runtime_kind *kind)
{
	const char *name = mapping->path ? strrchr(mapping->path, '/') : NULL;

	if (!name || !mapping->inode)
		return false;
	for (const char *const *begin = kind->names; *begin; begin++)
		if (!strncmp(name, *begin, strlen(*begin)))
			return true;
	return false;
}

static bool mapping_take(struct parser *parser, const struct mapping *mapping, int fd,
			 const struct runtime_kind *kind, struct runtime_location *location)
{
	struct elf_file elf = {.fd = fd};
	struct stat file;
	uint64_t address;

	if (fstat(fd, &file))
		return false;
	elf.bytes = (uint64_t)file.st_size;
	if (file_head_request(parser, &elf) ||
	    file_exports_request(parser, &elf, &location->exports) ||
	    !elf_address_of(&elf, mapping->offset, &address))
		return false;
	location->distance = mapping->start - address;
	return kind->is(&location->exports);
}

bool runtime_find(const struct runtime_reader *reader, const struct stack_thread *thread,
		  const struct runtime_kind *kind, struct runtime_location *location)
{
	unsigned int files = 0;
	struct process_maps *maps;
	struct cache processes;
	bool found = false;
	int err;

	if (!reader->parser)
		return false;
	process_maps_cache_init(&processes);
	maps = process_maps_get(&processes, reader->proc_root, thread, &err);
	for (size_t i = 0; maps && i < maps->count && !found && files < FILES_MAX; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		int fd = has_name(mapping, kind)
				 ? mapping_open(mapping, reader->proc_root, thread->tid)
				 : -1;

		files += fd >= 0;
		found = fd >= 0 && mapping_take(reader->parser, mapping, fd, kind, location);
		if (fd >= 0)
			close(fd);
	}
	cache_done(&processes);
	return found;
}

int runtime_location_request(struct runtime_reader *reader, struct runtime_standing *standing,
			     const struct stack_thread *thread,
			     const struct runtime_location *location,
			     struct runtime_request *request, bool faults, void *answer,
			     size_t bytes)
{
	static char got[PARSER_MESSAGE_MAX];
	ssize_t count;

	request->pid = thread->pid;
	request->tid = thread->tid;
	request->now_ns = thread->now_ns;
	request->distance = location->distance;
	request->exports = location->exports;
	count = runtime_request(reader, standing, request, NULL, 0, faults, bytes, got);
	if (count < 0)
		return (int)count;
	memcpy(answer, got, bytes);
	return 0;
}

bool runtime_look_begin(struct runtime_looks *looks, int64_t now_ns, int64_t due_ns,
			int64_t *began_ns)
{
	if (looks->scan_ns != now_ns)
		looks->spent_ns = 0;
	looks->scan_ns = now_ns;
	if (now_ns < due_ns || looks->spent_ns >= LOOK_SCAN_NS)
		return false;
	*began_ns = clock_monotonic_ns();
	return true;
}

int64_t runtime_look_end(struct runtime_looks *looks, int64_t now_ns, int64_t began_ns,
			 int64_t rest_ns)
{
	int64_t took_ns = clock_monotonic_ns() - began_ns;

	looks->spent_ns += took_ns;
	return now_ns + rest_ns + took_ns * LOOK_SHARE;
}
