/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which argument of a system call is a path. */
#ifndef TSNAP_PROC_SYSCALL_PATHS_H
#define TSNAP_PROC_SYSCALL_PATHS_H

/* Which argument is a path, and which the directory that it may be relative to; of two paths the
 * one that is there already. -1: none. */
struct syscall_path {
	int arg, dir_arg;
};

struct syscall_path_row {
	const char *name;
	struct syscall_path path;
};

extern const struct syscall_path_row syscall_paths[]; /* ends with a NULL name */

#endif
