/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Targets of descriptors, read through directories /proc/PID/fd that are kept open: half the time
 * of the whole path. A link that is read repeatedly is kept open itself, for three quarters of
 * that: the kernel then neither looks the name up nor asks whether it is still there. */
#ifndef TSNAP_PROC_FD_DIRS_H
#define TSNAP_PROC_FD_DIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FD_DIRS_MAX 256	  /* kept open; a process beyond that takes the whole path */
#define FD_LINKS_MAX 4096 /* kept open; a descriptor beyond that goes through the directory */

struct fd_dirs {
	struct fd_dir {
		int64_t pid; /* 0: none */
		int fd;
		int64_t used_ns;
	} dirs[FD_DIRS_MAX];
	struct fd_link {
		int64_t pid; /* 0: none */
		int fd;
		int link; /* /proc/PID/fd/N itself; 0: not open */
		int64_t used_ns;
	} links[FD_LINKS_MAX];
	int links_open, links_open_max; /* 0: not known yet */
};

/* True if a thread has the descriptors of its process's first one. It can have its own: CLONE_FILES
 * was not given, or unshare(2). kcmp(2) tells (CONFIG_KCMP, and CONFIG_CHECKPOINT_RESTORE before
 * 5.12); false where it does not. 1 us. */
bool fd_are_shared(int64_t pid, int64_t tid);

/* Reads fd/N as proc_link_read() does. shared: what fd_are_shared() told; others take the whole
 * path. */
ssize_t fd_link_read(struct fd_dirs *dirs, const char *root, int64_t pid, int64_t tid, bool shared,
		     int fd, int64_t now_ns, char *target, size_t size);
/* Closes directories and links that nobody asked for since now_ns - idle_ns. */
void fd_dirs_sweep(struct fd_dirs *dirs, int64_t now_ns, int64_t idle_ns);

#endif
