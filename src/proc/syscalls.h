/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System call numbers and names. */
#ifndef TSNAP_PROC_SYSCALLS_H
#define TSNAP_PROC_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sample/sample.h"

/* Position of the file descriptor among a system call's arguments. */

struct syscall_fd {
	const char *name;
	int arg; /* index from 0; of two descriptors, the one that data comes from, or the directory
		    of the old name */
};

extern const struct syscall_fd syscall_fds[]; /* ends with a NULL name */

/* Argument that is a path, and argument with the directory that it may be relative to; of two
 * paths, the one that exists already. -1: none. */
struct syscall_path {
	int arg, dir_arg;
};

/* Names of the errors that system calls fail with. */

/* The error's name, "ENOENT"; the number as text if it has no known name; NULL if it is 0.
 * Interned. */
const char *error_name(uint32_t number);

/* System call name of this machine's architecture (compat: of its 32-bit architecture; x32 calls
 * are recognized by their number), interned; "syscall_N" for a number that libseccomp does not
 * know, NULL for a negative number. Names are resolved once and read from an array until
 * syscalls_clear(). */
const char *syscall_name(int64_t nr, bool compat);
/* The name of a call of one architecture, a libseccomp token; "syscall_N" if the call is not known.
 * Interned, not cached. */
const char *syscall_name_resolve(uint32_t arch, int64_t nr);

/* The file descriptor that call nr was given, 0 to INT_MAX; -1: none. arg: its SAMPLE_ARG_COUNT
 * arguments. */
int syscall_fd(int64_t nr, bool compat, const int64_t *arg);

/* The one that data goes to, of a call that moves data between two descriptors (sendfile); -1:
 * none.
 */
int syscall_fd_to(int64_t nr, bool compat, const int64_t *arg);
/* The descriptor that the sample's thread waits for: of two, the one that its kernel stack shows;
 * -1: none, or that is not known. */
int syscall_fd_waiting(const char *root, const struct sample *sample, bool compat);
/* True if a thread with this stack, as /proc/TID/stack shows it, waits in such a call until it can
 * write. fs/splice.c of 4.9 to 6.17. Pure. */
bool syscall_stack_writes(const char *stack);

struct syscall_path syscall_path(int64_t nr, bool compat);

/* Forgets all resolved names; to be called before the interned names are dropped. */
void syscalls_clear(void);

/* The path that a system call was given, read from the thread's memory. */

struct sample;

/* Writes the path as the thread sees its file system; a relative path is made absolute by the
 * directory's descriptor or the working directory. Returns its length, or -errno: the call has no
 * path, or its page is not in memory. If another thread has overwritten the path since, the new
 * text is returned. */
ssize_t call_path_read(const char *root, const struct sample *sample, bool compat, char *path,
		       size_t size);

#endif
