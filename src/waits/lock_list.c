/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/lock_list.h"
#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 256

/* Parses a line: "1: FLOCK ADVISORY WRITE 4711 fd:00:1234 0 EOF" is a held lock, and the lines "1:
 * -> FLOCK ..." after it wait for it. Holder -1 is an open file description, holder 0 a process of
 * another pid namespace. */
static void line_take(struct lock_list *list, const char *line, struct lock_wait *held)
{
	const char *words = strchr(line, ':'), *arrow = strstr(line, "-> ");
	struct lock_wait lock = {.holder = held->holder};
	unsigned long long inode;
	long long pid;
	char kind[16];

	if (arrow)
		words = arrow + 1;
	if (!words ||
	    sscanf(words + 1, "%15s %*s %*s %lld %*[^:]:%*[^:]:%llu", kind, &pid, &inode) != 3) {
		*held = (struct lock_wait){0};
		return;
	}
	if (!arrow) {
		held->holder = pid > 0 ? pid : 0;
		return;
	}
	lock.waiter = pid;
	lock.inode = inode;
	lock.of_file = !strcmp(kind, "FLOCK");
	list->waits =
		memory_grow(list->waits, &list->capacity, list->count + 1, sizeof(*list->waits));
	list->waits[list->count++] = lock;
}

void lock_list_read(struct lock_list *list, const char *root)
{
	struct lock_wait held = {0};
	char path[PATH_MAX], line[LINE_BYTES];
	FILE *file;

	list->count = 0;
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
	*list = (struct lock_list){0};
}

const struct lock_wait *lock_list_find(const struct lock_list *list, int64_t waiter, uint64_t inode)
{
	const struct lock_wait *found = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct lock_wait *wait = &list->waits[i];

		if (wait->waiter != waiter || wait->inode != inode)
			continue;
		if (found && found->holder != wait->holder)
			return NULL;
		found = wait;
	}
	return found && found->holder ? found : NULL;
}
