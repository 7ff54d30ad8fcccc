/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Container, pod and systemd unit of threads, from the path of their control group, without other
 * input. Container runtimes and systemd name the groups that they make; the rules are rows of a
 * table. */
#ifndef TSNAP_SAMPLE_CGROUP_NAMES_H
#define TSNAP_SAMPLE_CGROUP_NAMES_H

#define CGROUP_NAME_SIZE 256   /* NAME_MAX of linux/limits.h, and the NUL */
#define CONTAINER_ID_LENGTH 64 /* hexadecimal digits: docker, podman, containerd, CRI-O */
#define CONTAINER_ID_SHORT 12  /* number of digits that docker ps shows */

/* Names found in a path; empty text and NULL: the path has none. Bytes are those of the path: not
 * printable. */
struct cgroup_names {
	const char *runtime;		  /* static words */
	char container[CGROUP_NAME_SIZE]; /* the whole id, or a name if the runtime uses names */
	char pod[CGROUP_NAME_SIZE];	  /* uid of a Kubernetes pod */
	char unit[CGROUP_NAME_SIZE];	  /* systemd unit; \x2d and similar escapes undone */
};

/* Finds the innermost container, and the innermost unit in it. */
void cgroup_names_find(const char *path, struct cgroup_names *names);

#endif
