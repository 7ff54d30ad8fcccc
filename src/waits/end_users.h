/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Users of an end of a pipe or a socket pair, or of an open file with a lock, that a family of
 * processes has inherited, under the number that it has in the process that was found to have it.
 */
#ifndef TSNAP_WAITS_END_USERS_H
#define TSNAP_WAITS_END_USERS_H

#include <stdbool.h>
#include <stdint.h>

#define END_FAMILY_MAX 128 /* limit of processes that are searched */
#define END_FDS_MAX 1024
#define END_THREADS_MAX 16 /* limit of threads of each process that are searched */

struct end_users {
	uint32_t count;	 /* processes that have the end */
	int64_t in_call; /* pid of one of these that is in a system call on the end; 0: none */
	int64_t oldest;	 /* pid of the one that started first */
};

/* True if the process has descriptor fd with this link ("pipe:[12]"), and the link's mode has
 * exactly these of the bits S_IRUSR (open for reading) and S_IWUSR (for writing): a FIFO that is
 * open for both is no other end. mode_bits 0: the descriptor's open file has a lock, and link is
 * that lock (waits/lock_list.h). */
bool end_is_had(const char *root, int64_t pid, int fd, const char *link, uint32_t mode_bits);

/* True if one of the process's first END_FDS_MAX descriptors has this link and exactly these mode
 * bits. */
bool end_is_among(const char *root, int64_t pid, const char *link, uint32_t mode_bits);

/* Looks at the process that has the end as descriptor fd, at its parent, and at parents and
 * children of all that have it. */
struct end_users end_users_find(const char *root, int64_t holder, int fd, const char *link,
				uint32_t mode_bits);

#endif
