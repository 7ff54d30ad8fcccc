/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/cgroup_events.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define WALK_MOST_NS (20 * NS_PER_MS)
#define SHARE 1000 /* reading takes 1/SHARE of the time */
#define GAP_NS NS_PER_SECOND

static const struct kind {
	const char *name, *controller;
	/* files in the order in which they are tried, and the word before the count */
	struct {
		const char *file, *word;
	} v1, v2[2];
	const char *limit_v1, *limit_v2;
} kinds[CGROUP_EVENT_KINDS] = {
	/* clang-format off */
	[CGROUP_FORK_REFUSED] = {"fork refused", "pids", {"pids.events", "max"},
		{{"pids.events.local", "max"}, {"pids.events", "max"}}, "pids.max", "pids.max"},
	[CGROUP_OUT_OF_MEMORY] = {"out of memory", "memory", {"memory.oom_control", "oom_kill"},
		{{"memory.events.local", "oom"}, {"memory.events", "oom"}}, "memory.limit_in_bytes", "memory.max"},
	/* clang-format on */
};

const char *cgroup_event_name(enum cgroup_event_kind kind)
{
	return kinds[kind].name;
}

const char *cgroup_event_limit(const struct cgroup_events *events, enum cgroup_event_kind kind)
{
	return events->mounts[kind].v1 ? kinds[kind].limit_v1 : kinds[kind].limit_v2;
}

/* The number after the word that begins a line; -1: there is none. */
static int64_t count_find(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, word, length) && at[length] == ' ')
			return strtoll(at + length, NULL, 10);
	}
	return -1;
}

static int64_t count_read(const struct cgroup_mount *mount, const struct kind *kind,
			  const char *path)
{
	char text[512];

	if (mount->v1)
		return cgroup_mount_read(mount, path, kind->v1.file, text, sizeof(text)) > 0
			       ? count_find(text, kind->v1.word)
			       : -1;
	for (int i = 0; i < 2; i++)
		if (cgroup_mount_read(mount, path, kind->v2[i].file, text, sizeof(text)) > 0)
			return count_find(text, kind->v2[i].word);
	return -1;
}

/* A walk over the groups of a controller. */
struct walk {
	struct cgroup_events *events;
	enum cgroup_event_kind kind;
	cgroup_event_callback *take;
	void *to;
};

static bool group_take(void *to, const char *path)
{
	const struct walk *walk = to;
	struct cgroup_events *events = walk->events;
	int64_t count = count_read(&events->mounts[walk->kind], &kinds[walk->kind], path);
	uint64_t key = hash_u64(hash_bytes(path, strlen(path)) + walk->kind), *known;
	int64_t before;
	bool added = false;

	/* nearly all groups never have an event: a count of 0 needs no memory */
	known = count > 0 && events->counts.used < CGROUP_EVENTS_GROUPS_MAX
			? index_put(&events->counts, key, &added)
			: index_find(&events->counts, key);
	if (!known || count < 0)
		return true;
	before = added ? 0 : (int64_t)*known - 1;
	*known = (uint64_t)count + 1;
	/* a group that was made again begins at 0 */
	if (count < before)
		before = 0;
	if (events->begun && count > before)
		walk->take(walk->to, walk->kind, path, count - before);
	return true;
}

void cgroup_events_read(struct cgroup_events *events, const char *proc_root, int64_t now_ns,
			cgroup_event_callback *take, void *to)
{
	int64_t start_ns = clock_monotonic_ns(), spent_ns;
	bool all = true;

	if (now_ns < events->next_ns)
		return;
	for (int kind = 0; kind < CGROUP_EVENT_KINDS && !events->found; kind++)
		cgroup_mount_find(&events->mounts[kind], proc_root, kinds[kind].controller);
	events->found = true;
	for (int kind = 0; kind < CGROUP_EVENT_KINDS; kind++) {
		struct walk walk = {events, (enum cgroup_event_kind)kind, take, to};
		struct cgroup_mount *mount = &events->mounts[kind];

		if (mount->path)
			all &= cgroup_mount_walk(mount, start_ns + WALK_MOST_NS, group_take, &walk);
	}
	/* on a host with very many groups, the first walk may take several */
	events->begun |= all;
	spent_ns = clock_monotonic_ns() - start_ns;
	events->next_ns = now_ns + (spent_ns * SHARE > GAP_NS ? spent_ns * SHARE : GAP_NS);
}

void cgroup_events_done(struct cgroup_events *events)
{
	for (int kind = 0; kind < CGROUP_EVENT_KINDS; kind++)
		cgroup_mount_done(&events->mounts[kind]);
	index_clear(&events->counts);
	*events = (struct cgroup_events){0};
}
