/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the mount of a controller's hierarchy of control groups, and reads files of its groups,
 * cgroups(7): a v1 hierarchy that has the controller, else the v2 hierarchy. */
#ifndef TSNAP_PROC_CGROUP_MOUNT_H
#define TSNAP_PROC_CGROUP_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_FILE_SIZE (2ul * PATH_MAX)

/* Mount of a controller's hierarchy. Zeroed: the host has none. */
struct cgroup_mount {
	char *path; /* mount point; NULL: not mounted */
	char *root; /* group that is mounted there, as a path of /proc/TID/cgroup */
	bool v1;
};

/* Finds the controller's mount in PROC_ROOT/self/mountinfo. */
void cgroup_mount_find(struct cgroup_mount *mount, const char *proc_root, const char *controller);
void cgroup_mount_done(struct cgroup_mount *mount);

/* The path of a file of the group, whose own path is that of /proc/TID/cgroup. */
void cgroup_mount_file(const struct cgroup_mount *mount, const char *group, const char *name,
		       char file[CGROUP_FILE_SIZE]);
/* Reads a file of the group, NUL-terminated and cut at size - 1. Returns the length; negative: the
 * file can't be read. */
ssize_t cgroup_mount_read(const struct cgroup_mount *mount, const char *group, const char *name,
			  char *bytes, size_t size);
/* The number in a file of the group; -1: it has none, for example "max", or can't be read. */
int64_t cgroup_mount_number(const struct cgroup_mount *mount, const char *group, const char *name);

/* Callback for the path of a group; false ends the walk. */
typedef bool cgroup_callback(void *to, const char *path);
/* Visits the mounted group and all groups below it, until end_ns (monotonic) and to a limited
 * depth. True if it has visited all of them. */
bool cgroup_mount_walk(const struct cgroup_mount *mount, int64_t end_ns, cgroup_callback *take,
		       void *to);

/* Length of the parent group's path, for a path of that length; 0: there is no parent. */
size_t cgroup_outer(const char *path, size_t length);

#endif
