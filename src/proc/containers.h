/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files in which their runtimes keep them: no daemon is asked. */
#ifndef TSNAP_PROC_CONTAINERS_H
#define TSNAP_PROC_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "proc/container_file.h"

#define CONTAINERS_MAX 4096
#define CONTAINERS_RECHECK_NS (60 * 1000000000ll) /* docker rename */
#define CONTAINERS_UNNAMED_NS (5 * 1000000000ll)  /* a container that is being made */

struct containers {
	struct cache known;
	container_file_reader *read; /* set by who wants another one */
	void *of;		     /* given to it */
};

void containers_init(struct containers *containers);
/* The name of the container that the threads of this control group are in, interned; NULL: none, or
 * not known. pid: a process in it. proc_root: files are those that its process 1 sees. */
const char *container_name(struct containers *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns);
/* Returns how many containers, of those asked for lately, have no name because files of process 1
 * may not be read (refused), or because none of the known files has it. */
size_t containers_unnamed(const struct containers *containers, bool refused);
/* NAMESPACE/NAME of its Kubernetes pod, interned; NULL: none, or not known. */
const char *pod_name(struct containers *containers, const char *proc_root, const char *cgroup,
		     int64_t now_ns);

#endif
