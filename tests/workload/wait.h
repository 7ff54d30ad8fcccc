/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for something or somebody: what the workload `wait` can have one wait for. */
#ifndef WAIT_H
#define WAIT_H

#include <sys/types.h>

#include "workload.h"

#define OTHER "other" /* comm of the process at the other end */

/* A wait that a row prepares, and a thread then does for ever. The texts are in tsnap's words. */
struct waiting {
	long nr;
	long arg[6];
	int fd;		     /* descriptor that the call is about; -1: none */
	void (*run)(void *); /* instead of the call */
	pid_t pid;	     /* waits_on_pid; 0: none */
	char waits_on[256], connection[256], remote[128], file[256];
	const char *filetype;
	long inflight;	/* -1: none */
	int semaphores; /* to remove; -1: none */
};

struct wait_row {
	const char *name;
	void (*prepare)(struct waiting *w);
};

/* Each ended by a row without a name. */
extern const struct wait_row socket_waits[], file_waits[], set_waits[], lock_waits[];

/* For ever. */
void stay(void);
/* A process that keeps what it has but that descriptor, called `other`. */
pid_t other_start(int close_fd);
/* The call is a read of the descriptor. */
void read_of(struct waiting *w, int fd);

#endif
