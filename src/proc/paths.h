/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path that a system call was given, read from the thread's memory. */
#ifndef TSNAP_PROC_PATHS_H
#define TSNAP_PROC_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct sample;

/* Writes the path as the thread sees its file system; a relative path is made absolute by the
 * directory's descriptor or the working directory. Returns its length, or -errno: the call has no
 * path, or its page is not in memory. If another thread has overwritten the path since, the new
 * text is returned. */
ssize_t call_path_read(const char *root, const struct sample *sample, bool compat, char *path,
		       size_t size);

#endif
