/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cpu_quota.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTA_STILL_NS NS_PER_SECOND	   /* age at which a quota is read again */
#define WALK_EVERY_NS (10 * NS_PER_SECOND) /* time between two walks for new groups */
#define WALK_MOST_NS (20 * NS_PER_MS)

void cpu_quotas_init(struct cpu_quotas *quotas, const char *proc_root)
{
	*quotas = (struct cpu_quotas){0};
	cgroup_mount_find(&quotas->mount, proc_root, "cpu");
}

void cpu_quotas_done(struct cpu_quotas *quotas)
{
	for (size_t i = 0; i < quotas->count; i++)
		free(quotas->groups[i].path);
	free(quotas->groups);
	cgroup_mount_done(&quotas->mount);
	index_clear(&quotas->slots);
	*quotas = (struct cpu_quotas){0};
}

/* True if the group has a quota: not "max 100000" of v2, not "-1" of v1. The root of v2 has no such
 * file. */
static bool quota_read(const struct cpu_quotas *quotas, const char *group)
{
	char text[64];

	return cgroup_mount_read(&quotas->mount, group,
				 quotas->mount.v1 ? "cpu.cfs_quota_us" : "cpu.max", text,
				 sizeof(text)) > 0 &&
	       strtoll(text, NULL, 10) > 0;
}

static int64_t count_find(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, key, length) && at[length] == ' ')
			return strtoll(at + length, NULL, 10);
	}
	return 0;
}

static void counts_read(const struct cpu_quotas *quotas, struct cpu_quota_group *group,
			int64_t now_ns)
{
	int64_t before = group->counts.throttled_periods;
	char text[1024];

	if (cgroup_mount_read(&quotas->mount, group->path, "cpu.stat", text, sizeof(text)) <= 0)
		return; /* the group is gone: its last counts stay */
	group->counts = (struct cpu_quota_counts){
		.periods = count_find(text, "nr_periods"),
		.throttled_periods = count_find(text, "nr_throttled"),
		.throttled_us = quotas->mount.v1 ? count_find(text, "throttled_time") / NS_PER_US
						 : count_find(text, "throttled_usec"),
	};
	if (group->counted_ns && group->counts.throttled_periods > before)
		group->throttled_ns = now_ns;
	group->counted_ns = now_ns;
}

/* Slot of the group, which is added if it is new; -1: there are too many. */
static int group_put(struct cpu_quotas *quotas, const char *path, size_t length, int64_t now_ns)
{
	bool added;
	uint64_t *slot;
	struct cpu_quota_group *group;

	slot = index_find(&quotas->slots, hash_bytes(path, length));
	if (!slot && quotas->count == CPU_QUOTA_GROUPS_MAX)
		return -1;
	slot = index_put(&quotas->slots, hash_bytes(path, length), &added);
	if (added) {
		quotas->groups = memory_grow(quotas->groups, &quotas->capacity, quotas->count + 1,
					     sizeof(*quotas->groups));
		quotas->groups[quotas->count++] = (struct cpu_quota_group){
			.path = memory_text(path, length),
		};
		*slot = quotas->count;
	}
	group = &quotas->groups[*slot - 1];
	if (!group->checked_ns || now_ns - group->checked_ns >= QUOTA_STILL_NS) {
		group->limited = quota_read(quotas, group->path);
		group->checked_ns = now_ns;
	}
	/* a group that the first walk has not visited was made since then, with counts of 0 */
	if (group->limited && !group->counted_ns) {
		counts_read(quotas, group, now_ns);
		if (!quotas->walked_ns || quotas->walk_cut)
			group->first = group->counts;
	}
	return (int)*slot - 1;
}

struct quota_walk {
	struct cpu_quotas *quotas;
	int64_t now_ns;
	bool cut;
};

static bool quota_take(void *to, const char *path)
{
	struct quota_walk *walk = to;

	if (quota_read(walk->quotas, path) &&
	    group_put(walk->quotas, path, strlen(path), walk->now_ns) < 0)
		walk->cut = true;
	return true;
}

void cpu_quotas_read(struct cpu_quotas *quotas, int64_t now_ns)
{
	struct quota_walk walk = {.quotas = quotas, .now_ns = now_ns};

	if (!quotas->mount.path)
		return;
	if (!quotas->walked_ns || now_ns - quotas->walked_ns >= WALK_EVERY_NS) {
		bool all = cgroup_mount_walk(&quotas->mount, clock_monotonic_ns() + WALK_MOST_NS,
					     quota_take, &walk);

		quotas->walk_cut |= walk.cut || !all;
		quotas->walked_ns = now_ns;
	}
	for (size_t i = 0; i < quotas->count; i++)
		if (quotas->groups[i].limited)
			counts_read(quotas, &quotas->groups[i], now_ns);
}

int cpu_quota_find(struct cpu_quotas *quotas, const char *path, size_t length, int64_t now_ns)
{
	int slot;

	if (!quotas->mount.path)
		return -1;
	/* outer groups, such as a container's, may have a quota, too: "/a/b", then "/a" and "/" */
	while (length) {
		slot = group_put(quotas, path, length, now_ns);
		if (slot < 0 || quotas->groups[slot].limited)
			return slot;
		length = cgroup_outer(path, length);
	}
	return -1;
}

int cpu_quota_outer(struct cpu_quotas *quotas, int slot, int64_t now_ns)
{
	const char *path = quotas->groups[slot].path;

	return cpu_quota_find(quotas, path, cgroup_outer(path, strlen(path)), now_ns);
}

const struct cpu_quota_group *cpu_quota_count(struct cpu_quotas *quotas, int slot, int64_t now_ns)
{
	struct cpu_quota_group *group = &quotas->groups[slot];

	if (group->counted_ns < now_ns)
		counts_read(quotas, group, now_ns);
	return group;
}

bool cpu_quota_holds(const struct cpu_quota_group *group, const char *path, size_t length)
{
	size_t own = strlen(group->path);

	return length >= own && !memcmp(path, group->path, own) &&
	       (own == 1 || length == own || path[own] == '/');
}
