/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are chosen by their ids, each for as long as it lives: the kernel reuses the id of
 * a process that was waited for.
 *
 * A process is identified by its id and its start time. A pidfd (Linux 5.3) shows its end, so that
 * a check costs one system call for any number of processes; without a pidfd, or if no descriptor
 * is left, start times are compared. A process that ended remains as a parent for a while: its
 * children may be seen later.
 */
#ifndef TSNAP_PROC_PROCESS_SET_H
#define TSNAP_PROC_PROCESS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/* Set of processes. Zeroed is not valid: see process_set_init(). */
struct process_set {
	const char *root;
	struct index began;	/* start time of each process, in clock ticks, plus one */
	struct index watched;	/* pidfd of each process that has one, plus one */
	struct index ended;	/* time before which a process ended, clock_boot_ns() */
	bool pidfds;		/* ids in /proc are those that system calls of this process use */
	int epoll;		/* epoll(7) of the pidfds; -1: there is none */
	size_t unwatched_count; /* processes that live and have no pidfd */
	int64_t tick_ns, swept_ns; /* clock tick of /proc; the last time that `ended` was swept */
};

/* Makes an empty set. root: of a proc tree; pidfds are used if it shows the caller's own pid
 * namespace. */
void process_set_init(struct process_set *set, const char *root);
void process_set_done(struct process_set *set);

/* Adds a process, unless it is in the set. start_boot_ns: its start time since boot; 0: the process
 * that has the id now. False: there is no such process. */
bool process_set_add(struct process_set *set, int64_t pid, uint64_t start_boot_ns);

/* True if a process with that parent and start time is a child of a process in the set. */
bool process_set_has_parent(const struct process_set *set, int64_t ppid, uint64_t start_boot_ns);

/* True if the process is in the set and had not ended at the last check. */
bool process_set_lives(const struct process_set *set, int64_t pid);

/* Calls gone() for each process whose id is free again, or is another process's. whole: compares
 * start times of all processes without a pidfd, even if they are many. */
void process_set_check(struct process_set *set, bool whole, void (*gone)(void *to, int64_t pid),
		       void *to);

#endif
