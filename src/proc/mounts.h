/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount of a thread's file, from /proc/TID/mountinfo, proc_pid_mountinfo(5): no file system is
 * asked, so that none that does not answer can hold the reader. */
#ifndef TSNAP_PROC_MOUNTS_H
#define TSNAP_PROC_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct mount_facts {
	int64_t id;
	/* major << 20 | minor, as in the kernel; a file system without a device has major 0 */
	uint32_t device;
	char point[PATH_MAX];  /* as the thread sees it */
	char type[32];	       /* "ext4" */
	char source[PATH_MAX]; /* "/dev/sda1", "server:/export" */
	char options[1024];    /* of the file system itself: "rw,fd=6,pgrp=77" */
};

/* Finds the mount that the thread's descriptor is on; if fd is -1, the one that the path is on,
 * unless a symbolic link in it leads to another one. False: not known. */
bool mount_find(const char *root, int64_t pid, int64_t tid, int fd, const char *path,
		struct mount_facts *mount);

/* True for a file system on a disk of this machine or in its memory: no server can keep whoever
 * reads it waiting. */
bool mount_is_local(const struct mount_facts *mount);

#endif
