/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Position of the file descriptor among a system call's arguments. */
#ifndef TSNAP_PROC_SYSCALL_FDS_H
#define TSNAP_PROC_SYSCALL_FDS_H

struct syscall_fd {
	const char *name;
	int arg; /* index from 0; of two descriptors, the one that data comes from, or the directory
		    of the old name */
};

extern const struct syscall_fd syscall_fds[]; /* ends with a NULL name */
/* Calls with two descriptors that move data: the one that data goes to. Ends likewise. */
extern const struct syscall_fd syscall_fds_to[];

#endif
