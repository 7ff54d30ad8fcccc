/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System call numbers and names. */
#ifndef TSNAP_PROC_SYSCALLS_H
#define TSNAP_PROC_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/syscall_paths.h"

/* System call name of this machine's architecture (compat: of its 32-bit one; x32 calls are told by
 * their number), interned; "syscall_N" for a number that libseccomp does not know, NULL for a
 * negative one. An array read after the first call, until syscalls_clear(). */
const char *syscall_name(int64_t nr, bool compat);
/* Index of the argument that is a file descriptor (read: 0, mmap: 4), or -1. Where a call has two
 * it is the one that data comes from. name: interned or not. A search: not to be made for each
 * sample. */
int syscall_fd_arg(const char *name);

/* The name of a call of one architecture, a libseccomp token; "syscall_N" where that is not known.
 * Interned, not cached. */
const char *syscall_name_resolve(uint32_t arch, int64_t nr);

/* The file descriptor that call nr was given, 0 to INT_MAX; -1: none. arg: its SAMPLE_ARG_COUNT
 * arguments. */
int syscall_fd(int64_t nr, bool compat, const int64_t *arg);

struct syscall_path syscall_path(int64_t nr, bool compat);

/* Forgets what was resolved, before the interned names go. */
void syscalls_clear(void);

#endif
