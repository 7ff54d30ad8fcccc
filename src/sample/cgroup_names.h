/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the path of a control group tells of who its threads are: container, pod, systemd unit.
 * Pure. Container runtimes and systemd name the groups that they make; the rules are rows of a
 * table.
 */
#ifndef TSNAP_SAMPLE_CGROUP_NAMES_H
#define TSNAP_SAMPLE_CGROUP_NAMES_H

#define CGROUP_NAME_SIZE 256   /* NAME_MAX of linux/limits.h, and the NUL */
#define CONTAINER_ID_LENGTH 64 /* of docker, podman, containerd and CRI-O: hexadecimal */
#define CONTAINER_ID_SHORT 12  /* of it, as docker ps shows it */

/* Empty text and NULL: the path does not tell. Bytes are those of the path: not printable. */
struct cgroup_names {
	const char *runtime;		  /* static words */
	char container[CGROUP_NAME_SIZE]; /* the whole id, or a name where the runtime uses those */
	char pod[CGROUP_NAME_SIZE];	  /* uid of a Kubernetes pod */
	char unit[CGROUP_NAME_SIZE];	  /* systemd's, \x2d and the like undone */
};

/* Of containers in containers, and of units in them, the innermost. */
void cgroup_names_find(const char *path, struct cgroup_names *names);

#endif
