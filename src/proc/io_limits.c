/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/io_limits.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALK_EVERY_NS (10 * NS_PER_SECOND) /* time between two walks for new groups */
#define WALK_MOST_NS (20 * NS_PER_MS)
#define STAT_BYTES 16384 /* some 100 devices */

struct limit_row {
	const char *word;  /* key in a line of io.max */
	const char *count; /* key in a line of io.stat */
	const char *file;  /* file of v1 with the limits, a line for each device */
	const char *counts, *direction;
};

/* clang-format off */
static const struct limit_row limit_rows[IO_LIMIT_KINDS] = {
	[IO_READ_BYTES]	 = {"rbps",  "rbytes", "blkio.throttle.read_bps_device",
			    "blkio.throttle.io_service_bytes", "Read"},
	[IO_WRITE_BYTES] = {"wbps",  "wbytes", "blkio.throttle.write_bps_device",
			    "blkio.throttle.io_service_bytes", "Write"},
	[IO_READS]	 = {"riops", "rios",   "blkio.throttle.read_iops_device",
			    "blkio.throttle.io_serviced", "Read"},
	[IO_WRITES]	 = {"wiops", "wios",   "blkio.throttle.write_iops_device",
			    "blkio.throttle.io_serviced", "Write"},
};
/* clang-format on */

const char *io_limit_word(enum io_limit_kind kind)
{
	return limit_rows[kind].word;
}

void io_limits_init(struct io_limits *limits, const char *proc_root)
{
	*limits = (struct io_limits){0};
	cgroup_mount_find(&limits->mount, proc_root, "blkio");
}

void io_limits_done(struct io_limits *limits)
{
	for (size_t i = 0; i < limits->count; i++)
		free(limits->groups[i].path);
	free(limits->groups);
	cgroup_mount_done(&limits->mount);
	*limits = (struct io_limits){0};
}

/* Parses the device number of a line "8:16 ...". */
static bool device_read(const char *line, uint32_t *dev)
{
	char *behind;
	unsigned long major = strtoul(line, &behind, 10);

	if (behind == line || *behind != ':')
		return false;
	*dev = (uint32_t)(major << 20 | strtoul(behind + 1, NULL, 10));
	return true;
}

static const char *line_next(const char *line)
{
	line = strchr(line, '\n');
	return line && line[1] ? line + 1 : NULL;
}

/* The number after " word=" or " word " in the line; -1: there is none, or it is "max". */
static int64_t number_behind(const char *line, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = line; *at && *at != '\n'; at++) {
		const char *number = at + 1 + length;
		char *end;
		int64_t value;

		if (*at != ' ' || strncmp(at + 1, word, length) != 0 ||
		    (*number != '=' && *number != ' '))
			continue;
		value = strtoll(number + 1, &end, 10);
		return end == number + 1 ? -1 : value;
	}
	return -1;
}

/* The group's use of a device until now; v1 has a line for each device and direction. */
static int64_t used_find(const struct io_limits *limits, const char *text, uint32_t dev,
			 enum io_limit_kind kind)
{
	const struct limit_row *row = &limit_rows[kind];
	uint32_t of;

	for (const char *line = text; line && *text; line = line_next(line)) {
		int64_t used = number_behind(line, limits->mount.v1 ? row->direction : row->count);

		if (used >= 0 && device_read(line, &of) && of == dev)
			return used;
	}
	return 0;
}

static void limit_put(struct io_limit_group *group, uint32_t dev, enum io_limit_kind kind,
		      int64_t limit, int64_t used)
{
	struct io_limit *at = group->limits, *end = at + group->count;

	while (at < end && (at->dev != dev || at->kind != kind))
		at++;
	if (at == group->limits + IO_LIMITS_OF_GROUP)
		return;
	if (at == end) {
		/* use before the limit was set does not count */
		*at = (struct io_limit){.dev = dev, .kind = kind, .first = used};
		group->count++;
	}
	at->limit = limit;
	at->used = used;
}

/* Sets all limits of the group to 0, which means none; devices and their use stay. */
static void limits_forget(struct io_limit_group *group)
{
	for (size_t i = 0; i < group->count; i++)
		group->limits[i].limit = 0;
}

static void limits_read_v1(const struct io_limits *limits, struct io_limit_group *group)
{
	static char counts[STAT_BYTES];
	char text[1024], *behind;
	uint32_t dev;

	for (int kind = 0; kind < IO_LIMIT_KINDS; kind++) {
		const struct limit_row *row = &limit_rows[kind];

		if (cgroup_mount_read(&limits->mount, group->path, row->file, text, sizeof(text)) <=
			    0 ||
		    cgroup_mount_read(&limits->mount, group->path, row->counts, counts,
				      sizeof(counts)) < 0)
			continue;
		if (!kind)
			limits_forget(group);
		for (const char *line = text; line; line = line_next(line))
			if (device_read(line, &dev) && strchr(line, ' '))
				limit_put(group, dev, (enum io_limit_kind)kind,
					  strtoll(strchr(line, ' '), &behind, 10),
					  used_find(limits, counts, dev, (enum io_limit_kind)kind));
	}
}

static void limits_read_v2(const struct io_limits *limits, struct io_limit_group *group)
{
	static char counts[STAT_BYTES];
	char text[4096];
	uint32_t dev;

	if (cgroup_mount_read(&limits->mount, group->path, "io.max", text, sizeof(text)) <= 0 ||
	    cgroup_mount_read(&limits->mount, group->path, "io.stat", counts, sizeof(counts)) < 0)
		return;
	limits_forget(group);
	for (const char *line = text; line; line = line_next(line))
		for (int kind = 0; kind < IO_LIMIT_KINDS; kind++) {
			int64_t limit = number_behind(line, limit_rows[kind].word);

			if (limit > 0 && device_read(line, &dev))
				limit_put(group, dev, (enum io_limit_kind)kind, limit,
					  used_find(limits, counts, dev, (enum io_limit_kind)kind));
		}
}

/* Reads a group's limits and use; a group that is gone keeps its last ones. */
static void group_read(const struct io_limits *limits, struct io_limit_group *group)
{
	if (limits->mount.v1)
		limits_read_v1(limits, group);
	else
		limits_read_v2(limits, group);
}

/* Adds the group, unless it is known, has no limit, or there are too many. */
static bool group_take(void *to, const char *path)
{
	struct io_limits *limits = to;
	struct io_limit_group group = {.path = memory_text(path, strlen(path))};

	bool known = limits->count == IO_LIMIT_GROUPS_MAX;

	for (size_t i = 0; i < limits->count; i++)
		known |= !strcmp(limits->groups[i].path, path);
	if (!known)
		group_read(limits, &group);
	if (!group.count) {
		free(group.path);
		return true;
	}
	limits->groups = memory_grow(limits->groups, &limits->capacity, limits->count + 1,
				     sizeof(*limits->groups));
	limits->groups[limits->count++] = group;
	return true;
}

void io_limits_read(struct io_limits *limits, int64_t now_ns)
{
	if (!limits->mount.path)
		return;
	for (size_t i = 0; i < limits->count; i++)
		group_read(limits, &limits->groups[i]);
	if (limits->walked_ns && now_ns - limits->walked_ns < WALK_EVERY_NS)
		return;
	cgroup_mount_walk(&limits->mount, clock_monotonic_ns() + WALK_MOST_NS, group_take, limits);
	limits->walked_ns = now_ns;
}
