/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ids that a thread of another pid namespace has in its memory, as /proc here shows them. */
#include "lookup/proc.h"
#include "lookup/waits.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_BYTES 4096
#define TASKS_MAX 256 /* threads of a process looked at; each costs some 10 us */

/* The thread's id in its own namespace: the last of NSpid in /proc/TID/status (4.1+), which begins
 * with the one that /proc shows. nested: the two may differ. 0: the thread is gone. */
static int64_t inner_id(const struct wait *wait, int64_t tid, bool *nested)
{
	static const char key[] = "\nNSpid:\t";
	char status[STATUS_BYTES], *at, *end;
	ssize_t length =
		proc_file_read(wait_root(wait), wait->pid, tid, "status", status, sizeof(status));

	*nested = false;
	if (length <= 0)
		return 0;
	at = strstr(status, key);
	if (!at)
		return tid;
	at += strlen(key);
	end = at + strcspn(at, "\n");
	*end = '\0';
	at = strrchr(at, '\t');
	*nested = at != NULL;
	return at ? strtoll(at + 1, NULL, 10) : tid;
}

int64_t thread_of_inner(const struct wait *wait, int64_t inner)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	int64_t found = 0;
	bool nested;
	DIR *tasks;

	if (!inner_id(wait, wait->tid, &nested))
		return 0;
	if (!nested)
		return inner;
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
