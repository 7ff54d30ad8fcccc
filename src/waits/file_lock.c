/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks on files that threads wait for in flock(2) or fcntl(2), and the process that has one. */
#include "waits/wait_object.h"
#include "proc/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SETLKW64 14 /* F_SETLKW64 of 32-bit calls, and F_OFD_SETLKW: asm-generic/fcntl.h */
#define OFD_SETLKW 38
#define PROC "/proc" /* edges are of this host */
#define STATUS_BYTES 4096

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
	int64_t pid, tid = 0;

	text_add_string(wait->text, "lock");
	if (wait->link)
		text_add_format(wait->text, " on %s", wait->link);
	/* chains read the holder anew in each scan; other numbers go without a search */
	lock = wait->numbers_only && !wait->anew ? NULL : lock_find(wait, waiter);
	if (!lock)
		return;
	pid = lock->locker;
	if (lock->of_file) {
		pid = holders_find_lock(&wait->waits->holders, lock, wait->pid, wait->now_ns,
					&count, &wait->pending);
		tid = holders_thread(&wait->waits->holders, lock->held, HOLDER_LOCKS, pid);
	}
	if (!pid) {
		if (!wait->pending)
			text_add_string(wait->text, ", no holder in /proc");
		return;
	}
	wait->facts.pid = pid;
	wait->facts.count = count;
	if (tid) /* in a table of descriptors that its process has not */
		wait->facts.tid = tid;
	text_add_string(wait->text, " held");
	wait_add_thread(wait, " by ", tid ? tid : pid);
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

/* True if the process catches SIGALRM, with which programs limit such waits: flock(1) with -w. */
static bool has_alarm(int64_t pid)
{
	static const char key[] = "SigCgt:\t";
	char status[STATUS_BYTES];
	const char *at;

	if (proc_file_read(PROC, pid, pid, "status", status, sizeof(status)) <= 0)
		return true;
	at = strstr(status, key);
	return !at || strtoull(at + strlen(key), NULL, 16) >> (SIGALRM - 1) & 1;
}

static void file_lock_edge(const struct wait_facts *facts, const struct sample *sample,
			   struct edge *edge)
{
	edge->kind = EDGE_FILE_LOCK;
	edge->timed = has_alarm(sample->thread.pid);
	edge->pid = facts->pid;
	edge->tid = facts->tid;
	edge->sure = facts->count > 1 || facts->tid != ABSENT ? SURE_LIKELY : SURE_CERTAIN;
}

const struct wait_object file_lock_object = {
	.kind = WAIT_LOCK,
	.serves = SERVES_LOCK,
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
