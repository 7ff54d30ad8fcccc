/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/file_type.h"
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FDINFO_BYTES 512 /* mnt_id is on the third line */

static const char *mode_word(unsigned int mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFCHR:
		return "char";
	case S_IFBLK:
		return "block";
	case S_IFIFO:
		return "fifo";
	default:
		return "other";
	}
}

static void descriptor_path(char path[PATH_MAX], const char *root, int64_t pid, int64_t tid, int fd)
{
	snprintf(path, PATH_MAX, "%s/%lld/task/%lld/fd/%d", root, (long long)pid, (long long)tid,
		 fd);
}

/* File systems on a disk of this machine or in its memory. */
static bool file_system_is_local(const char *name)
{
	static const char *const local[] = {
		"ext2",	   "ext3",   "ext4",	 "xfs",	      "btrfs",	  "tmpfs",    "ramfs",
		"rootfs",  "devpts", "proc",	 "sysfs",     "devtmpfs", "squashfs", "iso9660",
		"vfat",	   "f2fs",   "reiserfs", "jfs",	      "cgroup",	  "cgroup2",  "debugfs",
		"tracefs", "mqueue", "udf",	 "hugetlbfs",
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (!strcmp(local[i], name))
			return true;
	return false;
}

/* Id of the mount that the descriptor's file is on, proc(5); -1: not known. */
static long mount_of(const char *root, int64_t pid, int64_t tid, int fd)
{
	char name[32], text[FDINFO_BYTES];
	const char *line;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (proc_file_read(root, pid, tid, name, text, sizeof(text)) < 0)
		return -1;
	line = strstr(text, "mnt_id:");
	return line ? strtol(line + strlen("mnt_id:"), NULL, 10) : -1;
}

/* True if a line of mountinfo describes that mount, and its file system, the word after " - ", is
 * local. */
static bool line_is_local(const char *line, long mount)
{
	const char *end = strstr(line, " - ");
	char name[32];

	return end && strtol(line, NULL, 10) == mount && sscanf(end, " - %31s", name) == 1 &&
	       file_system_is_local(name);
}

static bool mount_is_local(const char *root, int64_t pid, int64_t tid, long mount)
{
	bool local = false;
	char *line = NULL;
	size_t size = 0;
	FILE *file;
	int fd;

	fd = mount < 0 ? -1 : proc_file_open(root, pid, tid, "mountinfo");
	if (fd < 0)
		return false;
	file = fdopen(fd, "r");
	while (!local && getline(&line, &size, file) > 0)
		local = line_is_local(line, mount);
	free(line);
	fclose(file);
	return local;
}

const char *file_type_local(const char *root, int64_t pid, int64_t tid, int fd)
{
	char path[PATH_MAX];
	struct stat found;

	if (!mount_is_local(root, pid, tid, mount_of(root, pid, tid, fd)))
		return NULL;
	descriptor_path(path, root, pid, tid, fd);
	return stat(path, &found) ? NULL : mode_word(found.st_mode);
}

const char *file_type_word(const char *root, int64_t pid, int64_t tid, int fd)
{
	char path[PATH_MAX];
	struct statx found;

	descriptor_path(path, root, pid, tid, fd);
	if (!statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &found))
		return mode_word(found.stx_mode);
	/* EINVAL: from glibc's substitute on a kernel without the call; EPERM: from a seccomp
	 * filter that does not know it */
	if (errno == ENOSYS || errno == EINVAL || errno == EPERM)
		return file_type_local(root, pid, tid, fd);
	return NULL;
}
