/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which argument of a system call is a file descriptor. */
#ifndef TSNAP_PROC_SYSCALL_FDS_H
#define TSNAP_PROC_SYSCALL_FDS_H

struct syscall_fd {
	const char *name;
	int arg; /* counted from 0; of two descriptors the one that data comes from, or the
		    directory of the old name */
};

extern const struct syscall_fd syscall_fds[]; /* ends with a NULL name */

#endif
