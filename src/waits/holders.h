/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the process that has an end of a pipe, a socket, or an open file with a lock, by going
 * through /proc/PID/fd of all processes, and of threads that have descriptors of their own, as
 * nothing in the kernel leads from a pipe to its holder. The search takes long, so it is done in
 * pieces, only for requested ends, and its results are cached.
 *
 * Processes with ids near the requester's come first: processes that were started together have
 * consecutive ids. For a lock these are ids near that of the process that took it.
 */
#ifndef TSNAP_WAITS_HOLDERS_H
#define TSNAP_WAITS_HOLDERS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/index.h"

#define HOLDERS_MAX 16384 /* limit of links that are searched for at a time */

#define HOLDER_FILES_MAX 8

/* Open mode of a descriptor, as the mode of its link in /proc/PID/fd shows it. */
enum holder_mode {
	HOLDER_ANY,
	HOLDER_READS,
	HOLDER_WRITES,
	HOLDER_LOCKS, /* the end is an open file, and the link the lock on it */
	HOLDER_FILE,  /* see holders_find_file() */
	HOLDER_MODE_COUNT
};

struct holder_file;

struct holders {
	const char *root;
	struct cache wanted;
	size_t pending, files; /* files: of those with a struct holder_file */
	const struct holder_file *kinds[HOLDER_FILES_MAX]; /* that were ever searched for */
	struct index lock_inodes; /* inodes of files whose locks are searched for */
	/* position of the walk */
	DIR *processes, *threads, *descriptors;
	int64_t pid, tid; /* tid: the thread whose table of descriptors is walked */
	uint64_t round;	  /* walks ended */
	/* the present scan, and the time that the search has left in it */
	int64_t scan_ns, left_ns;
};

void holders_init(struct holders *holders, const char *root);
void holders_sweep(struct holders *holders, int64_t now_ns, int64_t idle_ns);
void holders_done(struct holders *holders);

/* The process that has a descriptor with this mode and this link ("pipe:[12]"), other than the
 * requester where there is another; 0: none found. If count is not NULL, the requester itself is
 * returned if it has that descriptor, too; else a process that inherited the descriptor and is in a
 * system call on it; else one of *count processes that have it (1: only that one). *pending: not
 * found yet; call again in the next scan. now_ns: monotonic, the same for a whole scan. The search
 * takes up to a sixteenth of the time between two scans. */
int64_t holders_find(struct holders *holders, const char *link, enum holder_mode mode,
		     int64_t requester, int64_t now_ns, uint32_t *count, bool *pending);

/* Gives the searches of this scan that much time, instead. */
void holders_give_time(struct holders *holders, int64_t now_ns, int64_t time_ns);

/* The thread of that process by which the search found it, if that has left the process's table of
 * descriptors (unshare(2) with CLONE_FILES); 0: the process itself has the descriptor. */
int64_t holders_thread(struct holders *holders, const char *link, enum holder_mode mode,
		       int64_t pid);

struct lock_wait;

/* A process that has the open file to which a lock belongs, other than the requester where there is
 * another: the process that took the lock, if it still has the file, or one that is in a system
 * call on it, or the oldest of *count. It has the file as of now_ns. 0: none found; *pending: as
 * for holders_find(). */
int64_t holders_find_lock(struct holders *holders, const struct lock_wait *lock, int64_t requester,
			  int64_t now_ns, uint32_t *count, bool *pending);

/* Open files that share a link ("/dev/fuse"), and are told apart by /proc/PID/fdinfo/FD. */
struct holder_file {
	const char *link_end;
	bool (*is)(const char *root, int64_t pid, int fd, const char *which);
};

/* One of *count processes that have the open file that is() finds to be `which`, a text that no
 * other kind of file has, too; other than the requester where there is another. 0: none found;
 * *pending: as for holders_find(). */
int64_t holders_find_file(struct holders *holders, const struct holder_file *file,
			  const char *which, int64_t requester, int64_t now_ns, uint32_t *count,
			  bool *pending);

/* Notes that the process has that descriptor: holders_find() of its link then needs no search. */
void holders_note(struct holders *holders, const char *link, int64_t pid, int fd, int64_t now_ns);

/* True if the process has a descriptor with this mode and this link, other than fd, which is the
 * thread's. Both ends of a pipe or a socket pair are made by one call, so their numbers are close:
 * only descriptors near fd are looked at. */
bool holders_own(const char *root, int64_t pid, int64_t tid, int fd, const char *link,
		 enum holder_mode mode);

#endif
