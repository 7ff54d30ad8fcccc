/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/mounts.h"
#include "proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mount_is_local(const struct mount_facts *mount)
{
	static const char *const local[] = {
		"ext2",	   "ext3",   "ext4",	 "xfs",	      "btrfs",	  "tmpfs",    "ramfs",
		"rootfs",  "devpts", "proc",	 "sysfs",     "devtmpfs", "squashfs", "iso9660",
		"vfat",	   "f2fs",   "reiserfs", "jfs",	      "cgroup",	  "cgroup2",  "debugfs",
		"tracefs", "mqueue", "udf",	 "hugetlbfs",
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (!strcmp(local[i], mount->type))
			return true;
	return false;
}

/* Id of the mount that the descriptor's file is on, proc(5); -1: not known. */
static int64_t mount_of(const char *root, int64_t pid, int64_t tid, int fd)
{
	const char *line = strstr(proc_fdinfo_read(root, pid, tid, fd, NULL), "mnt_id:");

	return line ? strtol(line + strlen("mnt_id:"), NULL, 10) : -1;
}

/* Replaces escapes such as \040 by the characters that they stand for. */
static void escapes_replace(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		char digits[] = {at[0] == '\\' ? at[1] : '\0', at[1] ? at[2] : '\0', '\0', '\0'};

		if (*digits < '0' || *digits > '3' || !digits[1] || !at[3]) {
			*to = *at++;
			continue;
		}
		digits[2] = at[3];
		*to = (char)strtol(digits, NULL, 8);
		at += 4;
	}
	*to = '\0';
}

/* Parses "36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue". */
static bool line_parse(const char *line, struct mount_facts *mount)
{
	const char *end = strstr(line, " - ");
	unsigned int major, minor;
	long long id;

	*mount->options = '\0';
	if (!end ||
	    sscanf(line, "%lld %*s %u:%u %*s %4095s", &id, &major, &minor, mount->point) != 4)
		return false;
	if (sscanf(end, " - %31s %4095s %1023s", mount->type, mount->source, mount->options) < 2)
		return false;
	mount->id = id;
	mount->device = major << 20 | minor;
	escapes_replace(mount->point);
	escapes_replace(mount->source);
	return true;
}

/* The length of the mount point if the path is at or below it; 0: it is not. */
static size_t point_fits(const char *point, const char *path)
{
	size_t length = strcmp(point, "/") ? strlen(point) : 0;

	return !strncmp(path, point, length) && (path[length] == '/' || !path[length]) ? length + 1
										       : 0;
}

bool mount_find(const char *root, int64_t pid, int64_t tid, int fd, const char *path,
		struct mount_facts *mount)
{
	int64_t id = fd >= 0 ? mount_of(root, pid, tid, fd) : -1;
	struct mount_facts line_mount;
	size_t size = 0, longest = 0, fits;
	char *line = NULL;
	FILE *file;

	if (fd >= 0 ? id < 0 : !path || *path != '/')
		return false;
	file = proc_file_stream(root, pid, tid, "mountinfo");
	while (file && getline(&line, &size, file) > 0) {
		if (!line_parse(line, &line_mount))
			continue;
		fits = fd >= 0 ? line_mount.id == id : point_fits(line_mount.point, path);
		/* of mounts on one point the last one is seen */
		if (!fits || fits < longest)
			continue;
		longest = fits;
		*mount = line_mount;
	}
	free(line);
	if (file)
		fclose(file);
	return longest > 0;
}
