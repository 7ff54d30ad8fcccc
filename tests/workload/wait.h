/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for something, which the workload `wait` can make. */
#ifndef WAIT_H
#define WAIT_H

#include <sys/types.h>

#include "workload.h"

#define OTHER "other" /* comm of the process at the other end */

/* A wait that a row prepares, and a thread then does for ever. Texts are in tsnap's words. */
struct waiting {
	long nr;
	long arg[6];
	int fd;		     /* descriptor of the call; -1: none */
	void (*run)(void *); /* function to run instead of the call */
	pid_t pid;	     /* waits_on_pid; 0: none */
	char waits_on[256], connection[256], remote[128], file[256];
	const char *filetype;
	long inflight;	/* requests in flight; -1: none */
	int semaphores; /* set to remove; -1: none */
};

struct wait_row {
	const char *name;
	void (*prepare)(struct waiting *w);
};

/* Rows of waits, each array ended by a row without a name. */
extern const struct wait_row socket_waits[], file_waits[], set_waits[], lock_waits[];

/* Sleeps for ever. */
void stay(void);
/* Starts a process, called `other`, that keeps all descriptors except that one. */
pid_t other_start(int close_fd);
/* Makes the call a read of the descriptor. */
void read_of(struct waiting *w, int fd);

#endif
