/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out from outside what a system call that does not return was to read: Linux on x86-64 and
 * arm64 shows its number and arguments in /proc/PID/syscall while the thread sleeps. */
#ifndef TSNAP_KEEPER_BLOCKED_CALL_H
#define TSNAP_KEEPER_BLOCKED_CALL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A system call that a thread sleeps in. */
struct blocked_call {
	long number;
	uint64_t arguments[6];
	bool reads; /* it is a call that reads something */
};

/* What a call reads. */
struct blocked_subject {
	int64_t pid;	     /* another process; or, if 0, a file */
	char name[PATH_MAX]; /* of the file, or words */
	const char *why;     /* reason of the blocking; static */
};

/* False: the thread does not sleep in a call. */
bool blocked_call_read(pid_t pid, pid_t tid, struct blocked_call *call);

/* True: the call reads something of another process, or a file; subject is filled. False for calls
 * that wait for tsnap's own pipes, sockets, terminal, clocks and output. */
bool blocked_subject_find(pid_t pid, pid_t tid, const struct blocked_call *call,
			  struct blocked_subject *subject);

#endif
