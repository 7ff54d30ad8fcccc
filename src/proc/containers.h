/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of containers, from the files in which their runtimes keep them: no daemon is asked. */
#ifndef TSNAP_PROC_CONTAINERS_H
#define TSNAP_PROC_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

#define CONTAINERS_MAX 4096
#define CONTAINERS_RECHECK_NS (60 * 1000000000ll) /* docker rename */
#define CONTAINERS_UNNAMED_NS (5 * 1000000000ll)  /* a container that is being made */

void containers_init(struct cache *containers);
/* The name of the container that the threads of this control group are in, interned; NULL: none, or
 * not known. pid: a process in it. proc_root: files are those that its process 1 sees. */
const char *container_name(struct cache *containers, const char *proc_root, const char *cgroup,
			   int64_t pid, int64_t now_ns);
/* How many containers, of those asked for lately, have no name because files of process 1 may not
 * be read (refused), or because none of the known files has it. */
size_t containers_unnamed(const struct cache *containers, bool refused);
/* NAMESPACE/NAME of its Kubernetes pod, interned; NULL: none, or not known. */
const char *pod_name(struct cache *containers, const char *proc_root, const char *cgroup,
		     int64_t now_ns);

#endif
