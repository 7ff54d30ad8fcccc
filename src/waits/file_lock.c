/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of a lock on a file that a thread waits for in flock(2) or fcntl(2). */
#include "waits/holders.h"
#include "waits/lock_list.h"
#include "waits/waits.h"
#include "base/text.h"

#include <fcntl.h>

#define SETLKW64 14 /* F_SETLKW64 of 32-bit calls, and F_OFD_SETLKW: asm-generic/fcntl.h */
#define OFD_SETLKW 38

/* The lock that the thread waits for. NULL: not known. */
static const struct lock_wait *lock_find(const struct wait *wait, int64_t waiter)
{
	struct lock_list *locks = wait_file_locks(wait);
	uint64_t inode;

	if (wait->fd < 0 || !lock_inode(wait_root(wait), wait->pid, wait->tid, wait->fd, &inode))
		return NULL;
	if (locks->read_ns != wait->now_ns)
		lock_list_read(locks, wait_root(wait));
	locks->read_ns = wait->now_ns;
	return lock_list_find(locks, waiter, inode);
}

/* Writes "lock on /run/x held by 88 apt and 1 more": two processes have the locked file open. */
static void lock_describe(struct wait *wait, int64_t waiter)
{
	const struct lock_wait *lock;
	uint32_t count = 1;
	int64_t pid;

	wait->facts.kind = WAIT_LOCK;
	text_add_string(wait->text, "lock");
	if (wait->link)
		text_add_format(wait->text, " on %s", wait->link);
	/* chains read the holder anew in each scan; other numbers go without a search */
	lock = wait->numbers_only && !wait->anew ? NULL : lock_find(wait, waiter);
	if (!lock)
		return;
	pid = lock->locker;
	if (lock->of_file)
		pid = holders_find_lock(wait_holders(wait), lock, wait->pid, wait->now_ns, &count,
					&wait->pending);
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

void flock_describe(struct wait *wait)
{
	lock_describe(wait, wait->pid);
}

/* Only these commands of fcntl(2) wait for a lock. */
void fcntl_describe(struct wait *wait)
{
	int command = (int)wait->arg[1];

	if (command == OFD_SETLKW)
		lock_describe(wait, LOCK_OF_OPEN_FILE);
	else if (command == F_SETLKW || command == SETLKW64)
		lock_describe(wait, wait->pid);
	else
		file_describe(wait);
}
