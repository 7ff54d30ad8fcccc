/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/perf_map.h"
#include "proc/proc.h"
#include "unwind/elf/process_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES 65536

/* Reads a number, with or without 0x, and the blank after it. Returns what follows, or NULL. */
static char *hex_take(char *at, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(at, &end, 16);
	return errno || !isxdigit((unsigned char)*at) || *end != ' ' ? NULL : end + 1;
}

/* Takes a line, given with a NUL in place of its end, and its location in the map. Returns whether
 * it has a function. */
static bool line_take(struct perf_map *map, char *line, uint64_t location)
{
	uint64_t address, bytes;
	char *at = hex_take(line, &address);

	at = at ? hex_take(at, &bytes) : NULL;
	if (!at || !*at || !bytes || address > UINT64_MAX - bytes)
		return false;
	symbol_add(&map->table, address, bytes, 0, 0, location + (uint64_t)(at - line));
	return true;
}

int perf_map_open(const char *proc_root, int64_t tid, int64_t uid, bool *refused)
{
	int64_t inner, inner_tid;
	int err = proc_namespace_ids_read(proc_root, 0, tid, &inner, &inner_tid), fd;
	struct stat file;
	char path[64];

	*refused = false;
	if (err == -EINVAL)
		inner = tid; /* status has no such ids before 4.1 */
	else if (err)
		return -ENOENT;
	snprintf(path, sizeof(path), "tmp/perf-%lld.map", (long long)inner);
	fd = process_file_open(proc_root, tid, path, true);
	*refused = fd == -ELOOP || fd == -EINVAL; /* a link; no regular file */
	if (fd < 0)
		return fd;
	if (fstat(fd, &file) || ((int64_t)file.st_uid != uid &&
				 (file.st_uid || !process_shares(proc_root, tid, "mnt")))) {
		close(fd);
		*refused = true;
		return -EPERM;
	}
	return fd;
}

void perf_map_done(struct perf_map *map)
{
	if (map->fd >= 0)
		close(map->fd);
	symbol_table_done(&map->table);
	*map = (struct perf_map){.fd = -1};
}

static void map_read(struct perf_map *map)
{
	bool skip = false, added = false;
	char piece[PIECE_BYTES];
	size_t held = 0;
	ssize_t got;

	while (map->read_bytes + held < PERF_MAP_BYTES_MAX &&
	       (got = pread(map->fd, piece + held, sizeof(piece) - held,
			    (off_t)(map->read_bytes + held))) > 0) {
		char *line = piece, *end;

		held += (size_t)got;
		for (; (end = memchr(line, '\n', (size_t)(piece + held - line))); line = end + 1) {
			*end = '\0';
			added |= !skip &&
				 line_take(map, line, map->read_bytes + (uint64_t)(line - piece));
			skip = false;
		}
		if (line == piece && held == sizeof(piece)) {
			skip = true; /* a line that is longer than all that are meant */
			line = piece + held;
		}
		held -= (size_t)(line - piece);
		map->read_bytes += (uint64_t)(line - piece);
		memmove(piece, line, held);
	}
	map->cut = map->read_bytes + held >= PERF_MAP_BYTES_MAX;
	if (added)
		symbol_table_sort(&map->table, true);
}

/* True if the descriptor is of the map that was read, and the map is no shorter than what was read
 * of it. */
static bool same_map(const struct perf_map *map, int fd)
{
	struct stat old, file;

	return map->fd >= 0 && !fstat(map->fd, &old) && !fstat(fd, &file) &&
	       old.st_dev == file.st_dev && old.st_ino == file.st_ino &&
	       (uint64_t)file.st_size >= map->read_bytes;
}

void perf_map_take(struct perf_map *map, int fd)
{
	if (same_map(map, fd)) {
		close(fd);
	} else {
		perf_map_done(map);
		map->fd = fd;
	}
	map_read(map);
}

bool perf_map_name(const struct perf_map *map, uint64_t address, char *name, size_t size)
{
	const struct symbol *symbol = symbol_find(&map->table, address);
	ssize_t got;
	char *end;

	if (!symbol || map->fd < 0)
		return false;
	got = pread(map->fd, name, size - 1, (off_t)symbol_location(symbol));
	if (got <= 0)
		return false;
	name[got] = '\0';
	end = strchr(name, '\n');
	if (end)
		*end = '\0';
	return *name;
}
