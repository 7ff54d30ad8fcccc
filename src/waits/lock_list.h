/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File locks that processes wait for, as of one read of /proc/locks, proc_locks(5).
 *
 * A line there has the process that took a lock. A lock of fcntl(2) is that process's. One of
 * flock(2), or an OFD lock, belongs to an open file: the process that took it may have ended since,
 * and its id may be another one's. The processes that have the open file show the same line in
 * /proc/PID/fdinfo/FD (4.1).
 */
#ifndef TSNAP_WAITS_LOCK_LIST_H
#define TSNAP_WAITS_LOCK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

#define LOCK_WORDS 128
#define LOCK_OF_OPEN_FILE (-1) /* process that waits for, or took, an OFD lock */

struct lock_wait {
	int64_t waiter, locker; /* processes; locker 0: not known */
	uint64_t inode;
	bool of_file; /* the lock belongs to an open file, else to the locker */
	/* the lock: "FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF"; "": one of several */
	char held[LOCK_WORDS];
};

/* List of waits for file locks. Zeroed is empty. */
struct lock_list {
	struct lock_wait *waits;
	size_t count, capacity;
	struct index at; /* process and file to index in waits, plus one */
	int64_t read_ns; /* of its user */
};

/* Reads ROOT/locks; a list that can't be read is empty. */
void lock_list_read(struct lock_list *list, const char *root);
void lock_list_done(struct lock_list *list);
/* The wait of that process for a lock on a file with that inode number. NULL: there is none, or
 * there are several, for different locks. */
const struct lock_wait *lock_list_find(const struct lock_list *list, int64_t waiter,
				       uint64_t inode);

/* The next lock in the text of /proc/PID/fdinfo/FD from *at on, as in `held`; NULL: there are no
 * more. Changes the text. */
const char *lock_of_fdinfo(char **at);
/* True if the process has an open file as descriptor fd to which that lock belongs. */
bool lock_is_had(const char *root, int64_t pid, int fd, const char *held);

/* Inode number of a descriptor's file. tid 0: of the process. False: not known. */
bool lock_inode(const char *root, int64_t pid, int64_t tid, int fd, uint64_t *inode);

#endif
