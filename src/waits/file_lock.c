/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/file_lock.h"
#include "base/memory.h"
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SETLKW64 14 /* F_SETLKW64 of 32-bit calls, and F_OFD_SETLKW: asm-generic/fcntl.h */
#define OFD_SETLKW 38
#define LINE_BYTES 256
#define LOCKS_BYTES 65536 /* some 900 locks on one open file; the rest is ignored */

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

char *lock_fdinfo(const char *root, int64_t pid, int fd)
{
	static char text[LOCKS_BYTES];
	char name[32];

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (proc_file_read(root, 0, pid, name, text, sizeof(text)) < 0)
		*text = '\0';
	return text;
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
	char *at = lock_fdinfo(root, pid, fd);
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

/* --- waits */

/* The lock that the thread waits for. NULL: not known. */
static const struct lock_wait *lock_find(const struct wait *wait, int64_t waiter)
{
	struct lock_list *locks = &wait->waits->file_locks;
	uint64_t inode;

	if (wait->fd < 0 || !lock_inode(wait->waits->root, wait->pid, wait->tid, wait->fd, &inode))
		return NULL;
	if (locks->read_ns != wait->now_ns)
		lock_list_read(locks, wait->waits->root);
	locks->read_ns = wait->now_ns;
	return lock_list_find(locks, waiter, inode);
}

/* Writes "lock on /run/x held by 88 apt and 1 more": two processes have the locked file open. */
static void lock_describe(struct wait *wait, int64_t waiter)
{
	const struct lock_wait *lock;
	uint32_t count = 1;
	int64_t pid;

	text_add_string(wait->text, "lock");
	if (wait->link)
		text_add_format(wait->text, " on %s", wait->link);
	/* chains read the holder anew in each scan; other numbers go without a search */
	lock = wait->numbers_only && !wait->anew ? NULL : lock_find(wait, waiter);
	if (!lock)
		return;
	pid = lock->locker;
	if (lock->of_file)
		pid = holders_find_lock(&wait->waits->holders, lock, wait->pid, wait->now_ns,
					&count, &wait->pending);
	if (!pid) {
		if (!wait->pending)
			text_add_string(wait->text, ", no holder in /proc");
		return;
	}
	wait->facts.pid = pid;
	wait->facts.count = count;
	text_add_string(wait->text, " held");
	wait_add_thread(wait, " by ", pid);
	if (count > 1)
		text_add_format(wait->text, " and %u more", count - 1);
}

static void flock_describe(struct wait *wait)
{
	lock_describe(wait, wait->pid);
}

/* Only these commands of fcntl(2) wait for a lock. */
static void fcntl_describe(struct wait *wait)
{
	int command = (int)wait->arg[1];

	if (command == OFD_SETLKW)
		lock_describe(wait, LOCK_OF_OPEN_FILE);
	else if (command == F_SETLKW || command == SETLKW64)
		lock_describe(wait, wait->pid);
	else
		file_describe(wait);
}

static void file_lock_edge(const struct wait_facts *facts, const struct sample *sample,
			   struct edge *edge)
{
	(void)sample;
	edge->kind = EDGE_FILE_LOCK;
	edge->pid = facts->pid;
	edge->sure = facts->count > 1 ? SURE_LIKELY : SURE_CERTAIN;
}

const struct wait_object file_lock_object = {
	.kind = WAIT_LOCK,
	.calls =
		(const struct wait_call[]){
			{"flock", flock_describe, 0},
			{"fcntl", fcntl_describe, 0},
			{"fcntl64", fcntl_describe, 0},
			{0},
		},
	.edge = file_lock_edge,
	.passes_on = true,
	.searched = true,
};
