/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apps/go_counters.h"
#include "base/clock.h"
#include "base/index.h"
#include "keeper/avoid.h"
#include "proc/user_memory.h"
#include "unwind/elf/process_file.h"
#include "unwind/file_request.h"
#include "unwind/process_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 1024
#define FILE_NUMBER 0		  /* by which the parser knows the file, until it forgets it */
#define GOROUTINES_MAX 1000000000 /* more are no number of goroutines */
#define SINCE_UNIX_NS 1000000000000000000ll /* 2001: no collection was before */
#define PAUSES 256

struct pauses {
	uint64_t last_end, total, pauses[PAUSES], ends[PAUSES];
	uint32_t number;
} __attribute__((packed));

struct known_file {
	struct cache_entry entry; /* key: hash of device and inode */
	uint64_t device, inode;
	struct timespec changed;
	struct elf_file elf; /* its headers */
	uint64_t count, memstats, memstats_bytes;
};

/* True if that is what it should be. */
static bool pauses_are_whole(const struct pauses *pauses)
{
	uint64_t kept = pauses->number < PAUSES ? pauses->number : PAUSES, sum = 0;

	for (uint64_t i = 0; i < PAUSES; i++) {
		if (i >= kept && (pauses->pauses[i] || pauses->ends[i]))
			return false;
		if (pauses->ends[i] > pauses->last_end)
			return false;
		sum += pauses->pauses[i];
	}
	return pauses->number > PAUSES ? sum <= pauses->total : sum == pauses->total;
}

bool go_pauses_find(const void *bytes, size_t length, size_t *at)
{
	struct pauses pauses;

	for (*at = 0; *at + sizeof(pauses) <= length; *at += sizeof(uint64_t)) {
		const char *from = (const char *)bytes + *at;

		memcpy(&pauses.last_end, from, sizeof(pauses.last_end));
		if (pauses.last_end < SINCE_UNIX_NS || pauses.last_end > INT64_MAX)
			continue;
		memcpy(&pauses, from, sizeof(pauses));
		if (pauses.number && pauses.ends[(pauses.number - 1) % PAUSES] == pauses.last_end &&
		    pauses_are_whole(&pauses))
			return true;
	}
	return false;
}

void go_files_init(struct cache *files)
{
	*files = (struct cache){.entry_bytes = sizeof(struct known_file), .entries_max = FILES_MAX};
}

/* Has a parser read the file. */
static void file_read(struct known_file *known, int fd, struct parser *parser)
{
	struct file_go_answer answer;

	known->elf = (struct elf_file){.fd = fd, .bytes = known->elf.bytes};
	known->count = known->memstats = 0;
	if (!file_head_request(parser, &known->elf) && !known->elf.narrow &&
	    !file_go_request(parser, FILE_NUMBER, &known->elf, &answer)) {
		file_drop(parser, FILE_NUMBER);
		known->count = answer.is_go ? answer.program.count : 0;
		known->memstats = answer.is_go ? answer.program.memstats : 0;
		known->memstats_bytes = answer.program.memstats_bytes;
	}
	known->elf.fd = -1;
}

/* What is known of the file that the process runs; NULL: it can't be opened. */
static const struct known_file *file_find(struct cache *files, const char *root, int64_t pid,
					  struct parser *parser, int64_t now_ns)
{
	char link[PATH_MAX];
	struct known_file *known;
	struct stat stat;
	bool added;
	int fd;

	snprintf(link, sizeof(link), "%s/%lld/exe", root, (long long)pid);
	fd = avoids_process(pid) ? -1 : process_link_open(AT_FDCWD, link);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &stat)) {
		close(fd);
		return NULL;
	}
	known = cache_get(files, hash_u64(hash_u64((uint64_t)stat.st_dev) ^ (uint64_t)stat.st_ino),
			  now_ns, &added);
	if (known->device != (uint64_t)stat.st_dev || known->inode != (uint64_t)stat.st_ino ||
	    memcmp(&known->changed, &stat.st_mtim, sizeof(stat.st_mtim)) != 0) {
		known->device = (uint64_t)stat.st_dev;
		known->inode = (uint64_t)stat.st_ino;
		known->changed = stat.st_mtim;
		known->elf.bytes = (uint64_t)stat.st_size;
		file_read(known, fd, parser);
	}
	close(fd);
	return known;
}

bool go_place_find(struct go_place *place, struct cache *files, const char *root, int64_t pid,
		   struct parser *parser, int64_t now_ns)
{
	const struct stack_thread thread = {.pid = pid, .tid = pid, .now_ns = now_ns};
	const struct known_file *file = file_find(files, root, pid, parser, now_ns);
	struct process_maps *maps;
	struct cache processes;
	uint64_t address, distance;
	bool found = false;
	int err;

	*place = (struct go_place){0};
	if (!file || !file->count)
		return false;
	process_maps_cache_init(&processes);
	maps = process_maps_get(&processes, root, &thread, &err);
	for (size_t i = 0; maps && i < maps->count && !found; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		found = mapping->inode == file->inode &&
			elf_address_of(&file->elf, mapping->offset, &address);
		distance = found ? mapping->start - address : 0;
	}
	cache_done(&processes);
	if (!found)
		return false;
	place->count = file->count + distance;
	if (file->memstats) {
		place->memstats = file->memstats + distance;
		place->memstats_bytes = file->memstats_bytes;
	}
	return true;
}

/* Reads the stops, and first finds where they are. */
static void pauses_read(struct go_place *place, const char *root, int64_t pid,
			struct go_counters *counters)
{
	static char bytes[GO_MEMSTATS_MAX];
	struct pauses *pauses = (struct pauses *)bytes;
	size_t size = place->memstats_bytes < sizeof(bytes) ? place->memstats_bytes : sizeof(bytes);
	size_t at;
	ssize_t got;

	if (place->memstats && !place->pauses) {
		got = user_memory_read(root, pid, pid, place->memstats, bytes, size);
		if (got > 0 && go_pauses_find(bytes, (size_t)got, &at))
			place->pauses = place->memstats + at;
	}
	if (!place->pauses || user_memory_read(root, pid, pid, place->pauses, bytes,
					       sizeof(*pauses)) != sizeof(*pauses))
		return;
	counters->stopped_us = (int64_t)(pauses->total / NS_PER_US);
	counters->collections = pauses->number;
}

bool go_counters_read(struct go_place *place, const char *root, int64_t pid,
		      struct go_counters *counters)
{
	uint64_t count;

	*counters = (struct go_counters){0};
	if (user_memory_read(root, pid, pid, place->count, &count, sizeof(count)) !=
		    sizeof(count) ||
	    count > GOROUTINES_MAX)
		return false;
	counters->goroutines = (int64_t)count;
	pauses_read(place, root, pid, counters);
	return true;
}
