/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/perf_map.h"
#include "unwind/elf/process_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES 65536

static const char *hex_take(const char *at, const char *end, uint64_t *value)
{
	const char *start = at;

	*value = 0;
	for (; at < end && at - start < 16; at++) {
		char c = *at;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			break;
		*value = *value << 4 | (unsigned int)digit;
	}
	return at == start || at == end || *at != ' ' ? NULL : at + 1;
}

static const char *prefix_pass(const char *at, const char *end)
{
	return end - at > 2 && at[0] == '0' && at[1] == 'x' ? at + 2 : at;
}

bool perf_map_parse(const char *line, size_t length, struct perf_map_line *parsed)
{
	const char *end = line + length, *at;

	at = hex_take(prefix_pass(line, end), end, &parsed->address);
	at = at ? hex_take(prefix_pass(at, end), end, &parsed->bytes) : NULL;
	if (!at || at == end || !parsed->bytes || parsed->address > UINT64_MAX - parsed->bytes)
		return false;
	parsed->name = (size_t)(at - line);
	return true;
}

int perf_map_open(const char *proc_root, int64_t tid, int64_t uid, bool *refused)
{
	int64_t inner = process_inner_pid(proc_root, tid);
	struct stat file;
	char path[64];
	int fd;

	*refused = false;
	if (inner < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "tmp/perf-%lld.map", (long long)inner);
	fd = process_file_open(proc_root, tid, path, true);
	*refused = fd == -ELOOP || fd == -EINVAL; /* a link; no regular file */
	if (fd < 0)
		return fd;
	if (fstat(fd, &file) || ((int64_t)file.st_uid != uid &&
				 (file.st_uid || !process_shares_mounts(proc_root, tid)))) {
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
		const char *line = piece, *end;
		struct perf_map_line parsed;

		held += (size_t)got;
		for (; (end = memchr(line, '\n', (size_t)(piece + held - line))); line = end + 1) {
			if (!skip && perf_map_parse(line, (size_t)(end - line), &parsed)) {
				symbol_add(&map->table, parsed.address, parsed.bytes, 0, 0,
					   map->read_bytes + (size_t)(line - piece) + parsed.name);
				added = true;
			}
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
