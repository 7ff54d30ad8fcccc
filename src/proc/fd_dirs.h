/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads targets of descriptors through directories /proc/PID/fd that stay open: half the time of
 * the whole path. */
#ifndef TSNAP_PROC_FD_DIRS_H
#define TSNAP_PROC_FD_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_DIRS_MAX 256 /* limit of open directories; a further process takes the whole path */

struct fd_dirs {
	struct fd_dir {
		int64_t pid; /* 0: none */
		int fd;
		int64_t used_ns;
	} dirs[FD_DIRS_MAX];
};

/* True if a thread shares the descriptor table of its process's first thread. It has a table of its
 * own if it was made without CLONE_FILES, or has called unshare(2). Needs kcmp(2) (CONFIG_KCMP, and
 * CONFIG_CHECKPOINT_RESTORE before 5.12), without which the result is false. Takes 1 us. */
bool fd_are_shared(int64_t pid, int64_t tid);

/* True if two threads are known to have different descriptor tables: false without kcmp(2). */
bool fd_are_apart(int64_t pid, int64_t tid);

/* Reads fd/N as proc_link_read() does. shared: result of fd_are_shared(); if false, the whole path
 * is taken. */
ssize_t fd_link_read(struct fd_dirs *dirs, const char *root, int64_t pid, int64_t tid, bool shared,
		     int fd, int64_t now_ns, char *target, size_t size);
/* Closes directories that have not been used since now_ns - idle_ns. */
void fd_dirs_sweep(struct fd_dirs *dirs, int64_t now_ns, int64_t idle_ns);

#endif
