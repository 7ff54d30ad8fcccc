/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File locks that processes wait for, and their holders: /proc/locks, proc_locks(5), by process and
 * inode, as of one read.
 */
#ifndef TSNAP_WAITS_LOCK_LIST_H
#define TSNAP_WAITS_LOCK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lock_wait {
	int64_t waiter, holder; /* processes; holder 0: not known */
	uint64_t inode;
	bool of_file; /* flock(2): the lock belongs to an open file, which several processes may
			 share; else to the process */
};

/* List of waits for file locks. Zeroed is empty. */
struct lock_list {
	struct lock_wait *waits;
	size_t count, capacity;
};

/* Reads ROOT/locks; a list that can't be read is empty. */
void lock_list_read(struct lock_list *list, const char *root);
void lock_list_done(struct lock_list *list);
/* The wait of that process for a lock on a file with that inode number. NULL: there is none, or
 * there are several with different holders. */
const struct lock_wait *lock_list_find(const struct lock_list *list, int64_t waiter,
				       uint64_t inode);

#endif
