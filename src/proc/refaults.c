/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/refaults.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "proc/proc.h"
#include "sample/sample.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUP_BYTES 8192 /* of /proc/TID/cgroup */
#define GROUPS_MAX 1024
#define RATE_NS NS_PER_SECOND		/* least time of a rate, */
#define RATE_OLD_NS (5 * NS_PER_SECOND) /* and the age from which a count is of another time */
#define VMSTAT_BYTES 16384
#define KB 1024

/* Since 5.9 those of files have a name of their own; before, no other pages were counted. */
static const char *const words[] = {"workingset_refault_file", "workingset_refault"};

struct group_count {
	struct cache_entry entry;
	int64_t counted_ns, refaulted, rate;
};

/* The number behind the word that begins a line; ABSENT: there is none. */
static int64_t number_find(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, word, length) && at[length] == ' ')
			return strtoll(at + length, NULL, 10);
	}
	return ABSENT;
}

static int64_t bytes_of(int64_t pages)
{
	return pages == ABSENT ? ABSENT : pages * sysconf(_SC_PAGESIZE);
}

static int64_t refaulted_find(const char *text)
{
	int64_t pages = ABSENT;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && pages == ABSENT; i++)
		pages = number_find(text, words[i]);
	return bytes_of(pages);
}

static int64_t evicted_find(const char *text)
{
	int64_t pages = number_find(text, "pgsteal_file"),
		kswapd = number_find(text, "pgsteal_kswapd"),
		direct = number_find(text, "pgsteal_direct");

	if (pages == ABSENT && kswapd != ABSENT && direct != ABSENT)
		pages = kswapd + direct;
	return bytes_of(pages);
}

void refaults_parse(const char *text, struct refaults *refaults)
{
	int64_t kilobytes = number_find(text, "pgpgin");

	refaults->read = kilobytes == ABSENT ? ABSENT : kilobytes * KB;
	refaults->refaulted = refaulted_find(text);
	refaults->evicted = evicted_find(text);
}

void refaults_read(const char *proc_root, struct refaults *refaults)
{
	char path[PATH_MAX], text[VMSTAT_BYTES];

	snprintf(path, sizeof(path), "%s/vmstat", proc_root);
	if (host_file_read(path, text, sizeof(text)) < 0)
		*text = '\0';
	refaults_parse(text, refaults);
}

void group_refaults_init(struct group_refaults *rates)
{
	*rates = (struct group_refaults){
		.groups = {.entry_bytes = sizeof(struct group_count), .entries_max = GROUPS_MAX}};
}

void group_refaults_done(struct group_refaults *rates)
{
	cgroup_mount_done(&rates->mount);
	cache_done(&rates->groups);
}

/* Counts anew, and makes the rate of what is new since the last time. */
static void group_count(struct group_count *count, const struct cgroup_mount *mount,
			const char *group, int64_t now_ns)
{
	char text[VMSTAT_BYTES];
	int64_t refaulted = cgroup_mount_read(mount, group, "memory.stat", text, sizeof(text)) > 0
				    ? refaulted_find(text)
				    : ABSENT;
	int64_t since_ns = now_ns - count->counted_ns;

	count->rate = ABSENT;
	if (count->counted_ns && since_ns < RATE_OLD_NS && refaulted != ABSENT &&
	    count->refaulted != ABSENT && refaulted >= count->refaulted)
		count->rate = (int64_t)((double)(refaulted - count->refaulted) * NS_PER_SECOND /
					(double)since_ns);
	count->refaulted = refaulted;
	count->counted_ns = now_ns;
}

int64_t group_refaults_rate(struct group_refaults *rates, const char *proc_root, int64_t pid,
			    int64_t tid, int64_t now_ns)
{
	char text[CGROUP_BYTES], group[PATH_MAX];
	struct group_count *count;
	const char *path;
	size_t length;
	bool added;

	if (!rates->found)
		cgroup_mount_find(&rates->mount, proc_root, "memory");
	rates->found = true;
	if (!rates->mount.path ||
	    proc_file_read(proc_root, pid, tid, "cgroup", text, sizeof(text)) <= 0)
		return ABSENT;
	path = cgroup_of_controller(text, "memory", &length);
	if (!path)
		return ABSENT;
	snprintf(group, sizeof(group), "%.*s", (int)length, path);
	count = cache_get(&rates->groups, hash_bytes(group, strlen(group)), now_ns, &added);
	if (added)
		count->rate = ABSENT;
	if (added || now_ns - count->counted_ns >= RATE_NS)
		group_count(count, &rates->mount, group, now_ns);
	return count->rate;
}
