/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Container, pod and systemd unit of threads, from the path of their control group. Pure. Container
 * runtimes and systemd name the groups that they make; the rules are rows of a table. */
#ifndef TSNAP_SAMPLE_CGROUP_NAMES_H
#define TSNAP_SAMPLE_CGROUP_NAMES_H

#define CGROUP_NAME_SIZE 256   /* NAME_MAX of linux/limits.h, and the NUL */
#define CONTAINER_ID_LENGTH 64 /* hexadecimal: docker, podman, containerd, CRI-O */
#define CONTAINER_ID_SHORT 12  /* digits that docker ps shows */

/* Empty text and NULL: the path does not tell. Bytes are those of the path: not printable. */
struct cgroup_names {
	const char *runtime;		  /* static words */
	char container[CGROUP_NAME_SIZE]; /* the whole id, or a name where the runtime uses those */
	char pod[CGROUP_NAME_SIZE];	  /* uid of a Kubernetes pod */
	char unit[CGROUP_NAME_SIZE];	  /* systemd's, \x2d and the like undone */
};

/* Finds the innermost container, and the innermost unit in it. */
void cgroup_names_find(const char *path, struct cgroup_names *names);

#endif
