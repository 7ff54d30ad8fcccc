/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out what a system call that does not return was to read, from outside, by /proc/PID/syscall
 * of the calling process. Linux on x86-64 and arm64 shows the number and the arguments there while
 * a thread sleeps in a call.
 */
#ifndef TSNAP_CLI_BLOCKED_CALL_H
#define TSNAP_CLI_BLOCKED_CALL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCKED_LINE_SIZE 256

/* Process or file that a call reads. */
struct blocked_subject {
	int64_t pid;	     /* another process; 0: no process */
	char path[PATH_MAX]; /* a file, if pid is 0 */
	const char *why;     /* reason of the blocking; static */
};

/* Reads /proc/PID/task/TID/syscall while the thread sleeps; false: it runs, or has exited. */
bool blocked_line_read(pid_t pid, pid_t tid, char line[BLOCKED_LINE_SIZE]);

/* True if the line is of a call that reads something. */
bool blocked_line_reads(const char *line);

/* True: the call of that line reads something of another process, or a file; subject is filled.
 * False for calls that wait for tsnap's own pipes, sockets, terminal, clocks and output. */
bool blocked_subject_find(pid_t pid, pid_t tid, const char *line, struct blocked_subject *subject);

#endif
