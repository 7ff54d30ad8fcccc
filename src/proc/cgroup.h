/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the cgroup path that says most about a thread, from /proc/TID/cgroup, cgroups(7). */
#ifndef TSNAP_PROC_CGROUP_H
#define TSNAP_PROC_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chooses the first of these paths that is not the root: the v2 path, the path in v1's name=systemd
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
