/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions that a JIT compiler has made, as it lists them in /tmp/perf-PID.map: a line each,
 * "START SIZE NAME" in hexadecimal. Any program may write such a file, so nothing of it is
 * trusted.
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
	bool cut; /* the file is longer than is read */
	struct symbol_table table;
};

/* Opens the map of a process, in the process' own /tmp and by its pid in its own namespace, if the
 * map is a regular file, no link, and owned by the process' user uid, or by root where the process
 * has the mount namespace of tsnap. Returns a descriptor, or -errno; *refused: there is one, but it
 * may not be believed. */
int perf_map_open(const char *proc_root, int64_t tid, int64_t uid, bool *refused);

/* Takes over the descriptor of the present map, and reads what was added; another file (exec, a
 * reused pid) replaces the one before. A zeroed map with fd -1 is empty and valid. */
void perf_map_take(struct perf_map *map, int fd);
void perf_map_done(struct perf_map *map);

/* Fills name with that of the function at an address, cut at size - 1. */
bool perf_map_name(const struct perf_map *map, uint64_t address, char *name, size_t size);

#endif
