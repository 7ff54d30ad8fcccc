/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader of perf-PID.map, which any process may write. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/elf/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Reads the map in two parts, like one that grows. */
static void map_read(struct perf_map *map, const uint8_t *data, size_t size)
{
	size_t first = size / 2;

	must(write(map->fd, data, first) == (ssize_t)first);
	perf_map_take(map, dup(map->fd));
	must(write(map->fd, data + first, size - first) == (ssize_t)(size - first));
	perf_map_take(map, dup(map->fd));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map map = {.fd = memfd_create("map", MFD_CLOEXEC)};
	char name[64];

	if (map.fd < 0)
		return 0;
	map_read(&map, data, size);
	must(map.read_bytes <= size);
	for (size_t i = 0; i < map.table.count; i++) {
		uint64_t address = symbol_address(&map.table.symbols[i]);

		must(!i || address > symbol_address(&map.table.symbols[i - 1]));
		if (perf_map_name(&map, address, name, sizeof(name)))
			must(strlen(name) < sizeof(name) && !strchr(name, '\n'));
	}
	perf_map_name(&map, size * 4096, name, sizeof(name));
	perf_map_done(&map);
	return 0;
}
