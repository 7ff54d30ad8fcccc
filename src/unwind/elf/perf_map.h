/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions that a JIT compiler has made, as it tells them in /tmp/perf-PID.map: a line
 * "START SIZE NAME" each, in hexadecimal. Written by whoever it likes, so nothing of it is trusted.
 */
#ifndef TSNAP_UNWIND_ELF_PERF_MAP_H
#define TSNAP_UNWIND_ELF_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/symbol_table.h"

#define PERF_MAP_BYTES_MAX (128ull << 20)

struct perf_map {
	int fd; /* -1: none */
	uint64_t read_bytes;
	bool cut; /* longer than is read */
	struct symbol_table table;
};

struct perf_map_line {
	uint64_t address, bytes;
	size_t name; /* offset of the name in the line */
};

/* line: without its end. False where it is none. */
bool perf_map_parse(const char *line, size_t length, struct perf_map_line *parsed);

/* The map of that process, in its own /tmp and by its own number, if it is a plain file of its user
 * uid, or of root where it has the mount namespace of tsnap, and no link. A descriptor, or -errno;
 * *refused: there is one, but it may not be believed. */
int perf_map_open(const char *proc_root, int64_t tid, int64_t uid, bool *refused);

/* Zeroed, with fd -1, is empty and valid. Takes over the descriptor of what is the map now, and
 * reads what was added; another one (exec, a number given anew) takes the place of the one before.
 */
void perf_map_take(struct perf_map *map, int fd);
void perf_map_done(struct perf_map *map);

/* The function's name, cut at size - 1. */
bool perf_map_name(const struct perf_map *map, uint64_t address, char *name, size_t size);

#endif
