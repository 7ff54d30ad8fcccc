/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small files below /proc and /sys that hold one value or a few lines. */
#ifndef TSNAP_BASE_HOST_FILE_H
#define TSNAP_BASE_HOST_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most size - 1 bytes of the file into text, NUL-terminated, its last newline dropped.
 * Returns the bytes, or -errno. */
ssize_t host_file_read(const char *path, char *text, size_t size);

/* Returns the pid of this process as /proc shows it, which differs from getpid(2) if /proc is that
 * of another pid namespace; 0: there is no /proc, or it does not show this process. */
pid_t shown_pid(void);

#endif
