/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups, cgroups(7): the paths of a thread's groups, and the files of groups. */
#ifndef TSNAP_PROC_CGROUP_H
#define TSNAP_PROC_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Mount of a controller's hierarchy: the v1 hierarchy that has the controller, else the v2
 * hierarchy. Zeroed: the host has none. */
struct cgroup_mount {
	char *path; /* mount point; NULL: not mounted */
	char *root; /* group that is mounted there, as a path of /proc/TID/cgroup */
	bool v1;
};

/* Finds the controller's mount in PROC_ROOT/self/mountinfo. */
void cgroup_mount_find(struct cgroup_mount *mount, const char *proc_root, const char *controller);
void cgroup_mount_done(struct cgroup_mount *mount);

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

/* Chooses the path that says most about a thread, from /proc/TID/cgroup. It is the first of these
 * that is not the root: the v2 path, the path in v1's name=systemd
 * hierarchy, the first path of another v1 hierarchy; else "/". Returns the path inside text, not
 * terminated, and its *length; NULL if text has no whole line. */
const char *cgroup_choose(const char *text, size_t *length);
/* Finds the path in the hierarchy of that controller ("cpu"): the v1 path if the controller has a
 * v1 hierarchy, else the v2 path. Returns it inside text, not terminated, and its *length; NULL:
 * there is none. */
const char *cgroup_of_controller(const char *text, const char *controller, size_t *length);
/* Writes the other paths that fit into `to`, with line breaks between. False: there are none. */
bool cgroup_others(const char *text, const char *chosen, size_t length, char *to, size_t size);
/* The path that cgroup_choose() chooses for the thread, a transient name (base/names.h); NULL: the
 * thread has gone, or there is none. *others, unless others is NULL: the other paths that are not
 * the root, each once, with line breaks between, a transient name; NULL: there are none. */
const char *cgroup_read(const char *root, int64_t pid, int64_t tid, const char **others);

#endif
