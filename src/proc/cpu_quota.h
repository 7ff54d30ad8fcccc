/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups with a quota of CPU time: cpu.max of cgroup v2, cpu.cfs_quota_us of v1; and how
 * often and how long the kernel throttled them for it (cpu.stat). See admin-guide/cgroup-v2 and
 * scheduler/sched-bwc of the kernel's documentation.
 *
 * The kernel adds a throttled time, and counts a period, when it ends: the present one is not in
 * the counters yet.
 */
#ifndef TSNAP_PROC_CPU_QUOTA_H
#define TSNAP_PROC_CPU_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "proc/cgroup.h"

#define CPU_QUOTA_GROUPS_MAX 4096 /* limit of groups; further ones are not reported */

/* Counters of cpu.stat. */
struct cpu_quota_counts {
	int64_t periods, throttled_periods;
	int64_t throttled_us; /* throttled time, added up over CPUs */
};

struct cpu_quota_group {
	char *path; /* path in the controller's hierarchy */
	bool limited;
	int64_t checked_ns;   /* time when the quota was read */
	int64_t counted_ns;   /* time when the counts were read; 0: never */
	int64_t throttled_ns; /* time when throttled_periods was last seen to grow; 0: never */
	struct cpu_quota_counts first, counts; /* counts of the first read, and of the latest */
};

/* All groups with a quota. Zeroed: the host has none. */
struct cpu_quotas {
	struct cgroup_mount mount;
	struct cpu_quota_group *groups;
	size_t count, capacity;
	struct index slots; /* hash of a path to slot, plus one */
	int64_t walked_ns;  /* time of the last walk over all groups of the host; 0: never */
	bool walk_cut;	    /* a walk missed groups: it took too long, or they are too many */
};

/* Finds the hierarchy in PROC_ROOT/self/mountinfo. */
void cpu_quotas_init(struct cpu_quotas *quotas, const char *proc_root);
void cpu_quotas_done(struct cpu_quotas *quotas);

/* Reads the counts of all groups with a quota; now and then looks for new ones. */
void cpu_quotas_read(struct cpu_quotas *quotas, int64_t now_ns);

/* Slot of the innermost group with a quota that the path is in, or -1. The path is not
 * terminated. */
int cpu_quota_find(struct cpu_quotas *quotas, const char *path, size_t length, int64_t now_ns);
/* Slot of the innermost group with a quota outside of the group in `slot`, or -1. */
int cpu_quota_outer(struct cpu_quotas *quotas, int slot, int64_t now_ns);
/* The group in a slot, with counts no older than now_ns. */
const struct cpu_quota_group *cpu_quota_count(struct cpu_quotas *quotas, int slot, int64_t now_ns);

/* True if the path is the group's, or below it. The path is not terminated. */
bool cpu_quota_holds(const struct cpu_quota_group *group, const char *path, size_t length);

#endif
