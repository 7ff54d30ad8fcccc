/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refaults: pages of files that come back into the page cache after they were evicted for lack of
 * memory (mm/workingset.c of the kernel). Some were evicted long ago: memory is short only if pages
 * are being evicted meanwhile. Counted by host (/proc/vmstat) and control group (memory.stat, of
 * version 1 since Linux 5.10).
 */
#ifndef TSNAP_PROC_REFAULTS_H
#define TSNAP_PROC_REFAULTS_H

#include <stdint.h>

#include "base/cache.h"
#include "proc/cgroup.h"

/* Bytes since boot. ABSENT: not known. */
struct refaults {
	int64_t read; /* from block devices, also for swap */
	int64_t refaulted;
	/* pages of files, for the limits of control groups, too; before Linux 5.8 all pages, for
	 * lack of the host's memory */
	int64_t evicted;
};

/* Reads those of the host. text: that of /proc/vmstat. */
void refaults_parse(const char *text, struct refaults *refaults);
void refaults_read(const char *proc_root, struct refaults *refaults);

/* Rates of control groups. A zeroed struct with groups_init() is valid. */
struct group_refaults {
	struct cgroup_mount mount;
	bool found; /* the mount was looked for */
	struct cache groups;
};

void group_refaults_init(struct group_refaults *rates);
void group_refaults_done(struct group_refaults *rates);
/* Bytes a second that the thread's group takes back, over a second or more until now. ABSENT: not
 * known, as the first time that a group is asked about. */
int64_t group_refaults_rate(struct group_refaults *rates, const char *proc_root, int64_t pid,
			    int64_t tid, int64_t now_ns);

#endif
