/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files in which their runtimes keep them, without a request to any
 * daemon. */
#ifndef TSNAP_PROC_CONTAINERS_H
#define TSNAP_PROC_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "proc/container_file.h"

#define CONTAINERS_MAX 4096
#define CONTAINERS_RECHECK_NS (60 * 1000000000ll) /* names can change: docker rename */
#define CONTAINERS_UNNAMED_NS (5 * 1000000000ll)  /* the container may still be being made */

struct containers {
	struct cache known;
	container_file_reader *read; /* container_file_read() unless the caller replaces it */
	void *of;		     /* first argument of read */
};

void containers_init(struct containers *containers);
/* The name of the container that a control group belongs to, interned; NULL: none, or not known.
 * pid: a process in it. proc_root: files are read as its process 1 sees them. */
const char *container_name(struct containers *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns);
/* Returns the number of containers, among those looked up lately, without a name because files of
 * process 1 may not be read (refused), or because none of the known files has it (not refused). */
size_t containers_unnamed(const struct containers *containers, bool refused);
/* NAMESPACE/NAME of the control group's Kubernetes pod, interned; NULL: none, or not known. */
const char *pod_name(struct containers *containers, const char *proc_root, const char *cgroup,
		     int64_t now_ns);

#endif
