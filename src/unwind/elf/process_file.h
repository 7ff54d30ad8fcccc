/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files as a process sees them, in its mount namespace, below its root; and its ids. */
#ifndef TSNAP_UNWIND_ELF_PROCESS_FILE_H
#define TSNAP_UNWIND_ELF_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens a file below the process' root for reading; path without a leading slash. Symbolic links
 * lead to where they would lead the process; plain: there may be none. Returns a descriptor, or
 * -errno; -EINVAL: it is no regular file, or one that the kernel makes up (proc, sysfs, tracefs,
 * cgroup ...). Such a file is not even opened: opening alone may do something. */
int process_file_open(const char *proc_root, int64_t tid, const char *path, bool plain);
/* Opens the file that a link of /proc leads to, as process_file_open() does. directory: what the
 * link's path is relative to, or AT_FDCWD. */
int process_link_open(int directory, const char *link);

typedef void lines_callback(void *of, char *line);
/* Takes the whole lines of a file, without their ends, until `most` bytes of it were read; one that
 * is longer than 16 KB is dropped. Returns 0 or -errno. */
int lines_each(int fd, uint64_t most, lines_callback *take, void *of);

/* True if the process is in tsnap's namespace of that kind: "user"; "mnt": no other user has put
 * there what is there. */
bool process_shares(const char *proc_root, int64_t tid, const char *kind);

/* Returns the process' effective uid, or -1. */
int64_t process_user(const char *proc_root, int64_t tid);

/* True if the process' files can be reached by this thread: not by one that has ended. */
bool process_has_root(const char *proc_root, int64_t tid);

/* Returns the thread's id in its own pid namespace, or -1. */
int64_t thread_inner_tid(const char *proc_root, int64_t tid);

#endif
