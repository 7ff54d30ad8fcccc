/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates ids in the memory of a thread of another pid namespace to the ids that /proc here
 * shows. */
#include "base/cache.h"
#include "proc/proc.h"
#include "waits/waits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS_MAX 256 /* limit of threads of a process that are read; each costs some 10 us */
#define OUTER_MAX 131072

/* A thread and whether it has ids of another pid namespace. A thread never leaves its pid
 * namespace: setns(2) and unshare(2) change that of children only, pid_namespaces(7). */
struct outer_thread {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	bool known; /* the thread has no other ids than those that /proc shows */
};

void outer_threads_init(struct cache *threads)
{
	*threads = (struct cache){.entry_bytes = sizeof(struct outer_thread),
				  .entries_max = OUTER_MAX};
}

/* The thread's id in its own pid namespace; 0: the thread is gone. nested: its id or its process's
 * differs from the one that /proc shows. */
static int64_t inner_id(const struct wait *wait, int64_t tid, bool *nested)
{
	int64_t inner_pid = wait->pid, inner_tid = tid;
	int err = proc_namespace_ids_read(wait_root(wait), wait->pid, tid, &inner_pid, &inner_tid);

	/* -EINVAL: the kernel does not show these ids (before 4.1) */
	*nested = inner_pid != wait->pid || inner_tid != tid;
	return err && err != -EINVAL ? 0 : inner_tid;
}

int64_t thread_of_inner(const struct wait *wait, int64_t inner)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	int64_t found = 0;
	bool nested, added;
	DIR *tasks;
	struct outer_thread *outer =
		cache_get(wait_outer_threads(wait), (uint64_t)wait->tid, wait->now_ns, &added);

	if (outer->known && outer->start_ns == wait->start_ns)
		return inner;
	outer->known = false;
	if (!inner_id(wait, wait->tid, &nested))
		return 0;
	if (!nested) {
		outer->start_ns = wait->start_ns;
		outer->known = true;
		return inner;
	}
	snprintf(path, sizeof(path), "%s/%lld/task", wait_root(wait), (long long)wait->pid);
	tasks = opendir(path);
	if (!tasks)
		return 0;
	for (int i = 0; i < TASKS_MAX && !found && (entry = readdir(tasks)); i++)
		if (isdigit((unsigned char)*entry->d_name) &&
		    inner_id(wait, atoll(entry->d_name), &nested) == inner)
			found = atoll(entry->d_name);
	closedir(tasks);
	return found;
}
