/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The type of an open file that has a path, without waiting for its file system's server. */
#ifndef TSNAP_PROC_FILE_TYPE_H
#define TSNAP_PROC_FILE_TYPE_H

#include <stdint.h>

/* A static word for the thread's descriptor fd: "file", "dir", "char", "block", "fifo" or "other".
 * NULL: the descriptor is gone, or the type can't be read without waiting. Linux 4.11 and later
 * report it for every file system; before that see file_type_local(). */
const char *file_type_word(const char *root, int64_t pid, int64_t tid, int fd);

/* The result of file_type_word() without statx(2), which came with Linux 4.11. stat(2) may wait for
 * a server, so it is called only if the mount's file system is known to have none; NULL for others,
 * such as NFS, FUSE, and overlay, whose layers may be of any type. */
const char *file_type_local(const char *root, int64_t pid, int64_t tid, int fd);

#endif
