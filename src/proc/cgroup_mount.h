/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where a controller's hierarchy of control groups is mounted, and reads files of its groups,
 * cgroups(7): a hierarchy of v1 that has the controller, else that of v2. */
#ifndef TSNAP_PROC_CGROUP_MOUNT_H
#define TSNAP_PROC_CGROUP_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_FILE_SIZE (2ul * PATH_MAX)

/* Zeroed is of a host without it. */
struct cgroup_mount {
	char *path; /* NULL: it is not mounted */
	char *root; /* the group that is mounted there, as /proc/TID/cgroup has it */
	bool v1;
};

/* Looks into PROC_ROOT/self/mountinfo. */
void cgroup_mount_find(struct cgroup_mount *mount, const char *proc_root, const char *controller);
void cgroup_mount_done(struct cgroup_mount *mount);

/* The path of a file of the group, whose own path is that of /proc/TID/cgroup. */
void cgroup_mount_file(const struct cgroup_mount *mount, const char *group, const char *name,
		       char file[CGROUP_FILE_SIZE]);
/* Reads it, NUL-terminated and cut at size - 1. Length, or below 0: it can't be read. */
ssize_t cgroup_mount_read(const struct cgroup_mount *mount, const char *group, const char *name,
			  char *bytes, size_t size);

/* Takes the path of a group; false: the walk is to end. */
typedef bool cgroup_callback(void *to, const char *path);
/* Goes through all groups below the one that is mounted, and begins with that; until end_ns
 * (monotonic), and some levels deep. Whether it has met all of them. */
bool cgroup_mount_walk(const struct cgroup_mount *mount, int64_t end_ns, cgroup_callback *take,
		       void *to);

/* The length of the path of the group around the one whose path is that long; 0: there is none. */
size_t cgroup_outer(const char *path, size_t length);

#endif
