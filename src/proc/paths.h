/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path that a system call was given, out of the thread's memory. */
#ifndef TSNAP_PROC_PATHS_H
#define TSNAP_PROC_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct sample;

/* Writes the path, made absolute by the directory's descriptor or the working directory where it is
 * relative, as the thread sees its file system. Its length, or -errno: the call has none, or its
 * page is not in memory. What another thread has written there since is shown. */
ssize_t call_path_read(const char *root, const struct sample *sample, bool compat, char *path,
		       size_t size);

#endif
