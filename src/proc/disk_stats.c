/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/disk_stats.h"
#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>

#define DEVICE_NAME_SIZE 32 /* BDEVNAME_SIZE */

size_t disk_stats_read(const char *path, struct disk_stats stats[DISK_STATS_MAX])
{
	FILE *file = fopen(path, "re");
	size_t count = 0, capacity = 0;
	char *line = NULL;

	while (file && count < DISK_STATS_MAX && getline(&line, &capacity, file) > 0) {
		long long reads, read_ms, writes, write_ms, in_flight;
		char name[DEVICE_NAME_SIZE];

		if (sscanf(line, "%*d %*d %31s %lld %*d %*d %lld %lld %*d %*d %lld %lld", name,
			   &reads, &read_ms, &writes, &write_ms, &in_flight) == 6 &&
		    reads + writes > 0)
			stats[count++] = (struct disk_stats){.device = name_of_string(name),
							     .requests = reads + writes,
							     .taken_ms = read_ms + write_ms,
							     .in_flight = in_flight};
	}
	free(line);
	if (file)
		fclose(file);
	return count;
}
