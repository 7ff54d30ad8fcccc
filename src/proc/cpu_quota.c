/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cpu_quota.h"
#include "base/clock.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUOTA_STILL_NS NS_PER_SECOND	   /* then a quota is read again */
#define WALK_EVERY_NS (10 * NS_PER_SECOND) /* between two looks for new groups */
#define WALK_MOST_NS (20 * NS_PER_MS)
#define PATH_SIZE (2ul * PATH_MAX)
#define WALK_DEEP 32 /* groups in groups */

static ssize_t file_read(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, bytes, size - 1);
	close(fd);
	bytes[length > 0 ? length : 0] = '\0';
	return length;
}

/* Whether an option is among those with commas between. */
static bool option_listed(char *options, const char *name)
{
	char *save = NULL;

	for (char *at = strtok_r(options, ",\n", &save); at; at = strtok_r(NULL, ",\n", &save))
		if (!strcmp(at, name))
			return true;
	return false;
}

/* "36 35 0:31 /ROOT /MOUNT rw shared:1 - cgroup cgroup rw,cpu,cpuacct", proc(5) */
static void mount_read(struct cpu_quotas *quotas, char *line)
{
	char root[PATH_MAX], mount[PATH_MAX], type[32], options[512];
	char *behind = strstr(line, " - ");
	bool v1;

	if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(behind + 3, "%31s %*s %511s", type, options) != 2)
		return;
	v1 = !strcmp(type, "cgroup") && option_listed(options, "cpu");
	if (!v1 && (strcmp(type, "cgroup2") || quotas->mount))
		return;
	free(quotas->mount);
	free(quotas->root);
	quotas->mount = memory_text(mount, strlen(mount));
	quotas->root = memory_text(root, strlen(root));
	quotas->v1 = v1;
}

void cpu_quotas_init(struct cpu_quotas *quotas, const char *proc_root)
{
	char path[PATH_MAX], line[3 * PATH_MAX];
	FILE *mounts;

	*quotas = (struct cpu_quotas){0};
	snprintf(path, sizeof(path), "%s/self/mountinfo", proc_root);
	mounts = fopen(path, "re");
	while (mounts && !quotas->v1 && fgets(line, sizeof(line), mounts))
		mount_read(quotas, line);
	if (mounts)
		fclose(mounts);
}

void cpu_quotas_done(struct cpu_quotas *quotas)
{
	for (size_t i = 0; i < quotas->count; i++)
		free(quotas->groups[i].path);
	free(quotas->groups);
	free(quotas->mount);
	free(quotas->root);
	index_clear(&quotas->places);
	*quotas = (struct cpu_quotas){0};
}

/* The directory of the group, whose path begins with that of the group which is mounted. */
static void directory_of(const struct cpu_quotas *quotas, const char *group, const char *name,
			 char path[PATH_SIZE])
{
	size_t root = strlen(quotas->root);

	if (root > 1 && !strncmp(group, quotas->root, root) && (group[root] == '/' || !group[root]))
		group += root;
	snprintf(path, PATH_SIZE, "%s%s/%s", quotas->mount, strcmp(group, "/") ? group : "", name);
}

static ssize_t group_read(const struct cpu_quotas *quotas, const char *group, const char *name,
			  char *bytes, size_t size)
{
	char path[PATH_SIZE];

	directory_of(quotas, group, name, path);
	return file_read(path, bytes, size);
}

/* "max 100000" of v2, "-1" of v1: none. The root of v2 has no such file. */
static bool quota_read(const struct cpu_quotas *quotas, const char *group)
{
	char text[64];

	return group_read(quotas, group, quotas->v1 ? "cpu.cfs_quota_us" : "cpu.max", text,
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

	if (group_read(quotas, group->path, "cpu.stat", text, sizeof(text)) <= 0)
		return; /* it is gone: what was counted stays */
	group->counts = (struct cpu_quota_counts){
		.periods = count_find(text, "nr_periods"),
		.throttled_periods = count_find(text, "nr_throttled"),
		.throttled_us = quotas->v1 ? count_find(text, "throttled_time") / NS_PER_US
					   : count_find(text, "throttled_usec"),
	};
	if (group->counted_ns && group->counts.throttled_periods > before)
		group->throttled_ns = now_ns;
	group->counted_ns = now_ns;
}

/* The place of the group, which may be new; -1: there are too many. */
static int group_put(struct cpu_quotas *quotas, const char *path, size_t length, int64_t now_ns)
{
	bool added;
	uint64_t *place;
	struct cpu_quota_group *group;

	place = index_find(&quotas->places, hash_bytes(path, length));
	if (!place && quotas->count == CPU_QUOTA_GROUPS_MAX)
		return -1;
	place = index_put(&quotas->places, hash_bytes(path, length), &added);
	if (added) {
		quotas->groups = memory_grow(quotas->groups, &quotas->capacity, quotas->count + 1,
					     sizeof(*quotas->groups));
		quotas->groups[quotas->count++] = (struct cpu_quota_group){
			.path = memory_text(path, length),
		};
		*place = quotas->count;
	}
	group = &quotas->groups[*place - 1];
	if (!group->checked_ns || now_ns - group->checked_ns >= QUOTA_STILL_NS) {
		group->limited = quota_read(quotas, group->path);
		group->checked_ns = now_ns;
	}
	/* one that the first walk has not met began since then, with counts of 0 */
	if (group->limited && !group->counted_ns) {
		counts_read(quotas, group, now_ns);
		if (!quotas->walked_ns || quotas->walk_cut)
			group->first = group->counts;
	}
	return (int)*place - 1;
}

/* Walks over the groups in `path`, which has room for more. */
static void groups_walk(struct cpu_quotas *quotas, char path[PATH_MAX], int depth, int64_t now_ns,
			int64_t end_ns)
{
	char directory[PATH_SIZE];
	size_t length = strlen(path);
	const struct dirent *entry;
	DIR *dir;

	directory_of(quotas, path, "", directory);
	dir = opendir(directory);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		if (depth == WALK_DEEP || clock_monotonic_ns() > end_ns ||
		    length + strlen(entry->d_name) + 2 > PATH_MAX) {
			quotas->walk_cut = true;
			break;
		}
		snprintf(path + length, PATH_MAX - length, "/%s", entry->d_name);
		if (quota_read(quotas, path) && group_put(quotas, path, strlen(path), now_ns) < 0)
			quotas->walk_cut = true;
		groups_walk(quotas, path, depth + 1, now_ns, end_ns);
		path[length] = '\0';
	}
	if (dir)
		closedir(dir);
}

void cpu_quotas_read(struct cpu_quotas *quotas, int64_t now_ns)
{
	char path[PATH_MAX] = "";

	if (!quotas->mount)
		return;
	if (!quotas->walked_ns || now_ns - quotas->walked_ns >= WALK_EVERY_NS) {
		if (quota_read(quotas, quotas->root))
			group_put(quotas, quotas->root, strlen(quotas->root), now_ns);
		if (strcmp(quotas->root, "/"))
			snprintf(path, sizeof(path), "%s", quotas->root);
		groups_walk(quotas, path, 0, now_ns, clock_monotonic_ns() + WALK_MOST_NS);
		quotas->walked_ns = now_ns;
	}
	for (size_t i = 0; i < quotas->count; i++)
		if (quotas->groups[i].limited)
			counts_read(quotas, &quotas->groups[i], now_ns);
}

int cpu_quota_find(struct cpu_quotas *quotas, const char *path, size_t length, int64_t now_ns)
{
	int place;

	if (!quotas->mount)
		return -1;
	/* of "/a/b" in turn "/a/b", "/a" and "/": that of a container may have a quota, too */
	while (length) {
		place = group_put(quotas, path, length, now_ns);
		if (place < 0 || quotas->groups[place].limited)
			return place;
		if (length == 1)
			break;
		while (path[--length] != '/')
			;
		length += !length;
	}
	return -1;
}

int cpu_quota_outer(struct cpu_quotas *quotas, int place, int64_t now_ns)
{
	const char *path = quotas->groups[place].path, *end = strrchr(path, '/');

	if (!path[1])
		return -1;
	return cpu_quota_find(quotas, path, end > path ? (size_t)(end - path) : 1, now_ns);
}

const struct cpu_quota_group *cpu_quota_count(struct cpu_quotas *quotas, int place, int64_t now_ns)
{
	struct cpu_quota_group *group = &quotas->groups[place];

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
