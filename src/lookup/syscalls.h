/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System call numbers, for the rest of this room; names are in lookup.h. */
#ifndef TSNAP_LOOKUP_SYSCALLS_H
#define TSNAP_LOOKUP_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

/* The name of a call of one architecture, a libseccomp token; "syscall_N" where that is not known.
 * Interned, not cached. */
const char *syscall_name_resolve(uint32_t arch, int64_t nr);

/* The file descriptor that call nr was given, 0 to INT_MAX; -1: none. arg: its SAMPLE_ARG_COUNT
 * arguments. */
int syscall_fd(int64_t nr, bool compat, const int64_t *arg);

/* Which argument is a path, and which the directory that it may be relative to; of two paths the
 * one that is there already. -1: none. */
struct syscall_path {
	int arg, dir_arg;
};
struct syscall_path syscall_path(int64_t nr, bool compat);

/* Forgets what was resolved, before the interned names go. */
void syscalls_clear(void);

#endif
