/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Position of the path among a system call's arguments. */
#ifndef TSNAP_PROC_SYSCALL_PATHS_H
#define TSNAP_PROC_SYSCALL_PATHS_H

/* Argument that is a path, and argument with the directory that it may be relative to; of two
 * paths, the one that exists already. -1: none. */
struct syscall_path {
	int arg, dir_arg;
};

struct syscall_path_row {
	const char *name;
	struct syscall_path path;
};

extern const struct syscall_path_row syscall_paths[]; /* ends with a NULL name */

#endif
