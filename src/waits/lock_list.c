/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/lock_list.h"
#include "base/memory.h"
#include "proc/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_BYTES 256

static uint64_t wait_key(int64_t waiter, uint64_t inode)
{
	return hash_u64((uint64_t)waiter) ^ hash_u64(inode + 1);
}

/* Parses a line: "1: FLOCK ADVISORY WRITE 4711 fd:00:1234 0 EOF" is a held lock, and the lines "1:
 * -> FLOCK ..." after it wait for it. Id 0 is a process of another pid namespace, an id below -1
 * one of another host. */
static void line_take(struct lock_list *list, char *line, struct lock_wait *held)
{
	char *words = strchr(line, ':'), *arrow = strstr(line, "-> ");
	unsigned long long inode;
	struct lock_wait *known;
	uint64_t *slot;
	long long pid;
	char kind[16];
	bool added;

	line[strcspn(line, "\n")] = '\0';
	words = arrow ? arrow + 3 : words ? words + 2 : NULL;
	if (!words ||
	    sscanf(words, "%15s %*s %*s %lld %*[^:]:%*[^:]:%llu", kind, &pid, &inode) != 3) {
		*held = (struct lock_wait){0};
		return;
	}
	if (!arrow) {
		held->locker = pid > 0 ? pid : 0;
		held->of_file = strcmp(kind, "POSIX") != 0;
		snprintf(held->held, sizeof(held->held), "%s", words);
		return;
	}
	if (!*held->held)
		return;
	slot = index_put(&list->at, wait_key(pid, inode), &added);
	if (!added) {
		known = &list->waits[*slot - 1];
		if (strcmp(known->held, held->held) != 0)
			*known->held = '\0';
		return;
	}
	list->waits =
		memory_grow(list->waits, &list->capacity, list->count + 1, sizeof(*list->waits));
	held->waiter = pid;
	held->inode = inode;
	list->waits[list->count++] = *held;
	*slot = list->count;
}

void lock_list_read(struct lock_list *list, const char *root)
{
	struct lock_wait held = {0};
	char path[PATH_MAX], line[LINE_BYTES];
	FILE *file;

	list->count = 0;
	index_empty(&list->at);
	snprintf(path, sizeof(path), "%s/locks", root);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		line_take(list, line, &held);
	fclose(file);
}

void lock_list_done(struct lock_list *list)
{
	free(list->waits);
	index_clear(&list->at);
	*list = (struct lock_list){0};
}

const struct lock_wait *lock_list_find(const struct lock_list *list, int64_t waiter, uint64_t inode)
{
	const uint64_t *slot = index_find(&list->at, wait_key(waiter, inode));
	const struct lock_wait *wait = slot ? &list->waits[*slot - 1] : NULL;

	return wait && wait->waiter == waiter && wait->inode == inode && *wait->held ? wait : NULL;
}

const char *lock_of_fdinfo(char **at)
{
	char *words = strstr(*at, "lock:\t"), *end;

	words = words ? strstr(words, ": ") : NULL;
	end = words ? strchr(words, '\n') : NULL;
	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return words + 2;
}

bool lock_is_had(const char *root, int64_t pid, int fd, const char *held)
{
	char *at = proc_fdinfo_read(root, 0, pid, fd, NULL);
	const char *words;

	do
		words = lock_of_fdinfo(&at);
	while (words && strcmp(words, held) != 0);
	return words;
}

bool lock_inode(const char *root, int64_t pid, int64_t tid, int fd, uint64_t *inode)
{
	struct statx found;
	char path[PATH_MAX];

	if (tid)
		snprintf(path, sizeof(path), "%s/%lld/task/%lld/fd/%d", root, (long long)pid,
			 (long long)tid, fd);
	else
		snprintf(path, sizeof(path), "%s/%lld/fd/%d", root, (long long)pid, fd);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &found))
		return false;
	*inode = found.stx_ino;
	return true;
}
