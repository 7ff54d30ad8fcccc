/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are chosen by their ids, each for as long as it lives: the kernel gives the id of
 * a process that was waited for to another one.
 *
 * A process is known by its id and its start time. Its end is told by a pidfd (Linux 5.3), so that
 * a check costs one system call however many there are; where there is none, or no descriptor is
 * left, start times are compared. A process that ended is kept as a parent for a while: its
 * children may be met later.
 */
#ifndef TSNAP_PROC_PROCESS_SET_H
#define TSNAP_PROC_PROCESS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/* Zeroed is not valid: process_set_init(). */
struct process_set {
	const char *root;
	struct index began;	   /* start time of each, in clock ticks, plus one */
	struct index watched;	   /* pidfd of each process that has one, plus one */
	struct index ended;	   /* time before which each ended, clock_boot_ns() */
	bool pidfds;		   /* ids here are those that system calls of this process take */
	int epoll;		   /* epoll(7) of the pidfds; -1: there is none */
	size_t unwatched_count;	   /* processes that live and have no pidfd */
	int64_t tick_ns, swept_ns; /* clock tick of /proc; the last time that `ended` was swept */
};

/* root: of a proc tree; pidfds are used where it shows the caller's own pid namespace. */
void process_set_init(struct process_set *set, const char *root);
void process_set_done(struct process_set *set);

/* start_boot_ns: since boot, of the process that is meant, or 0: the one that has the id now.
 * False: there is none. One that is there already stays. */
bool process_set_add(struct process_set *set, int64_t pid, uint64_t start_boot_ns);

/* True if a process with that parent, which began then, is a child of one in the set. */
bool process_set_has_parent(const struct process_set *set, int64_t ppid, uint64_t start_boot_ns);

/* True if it is in the set, and has not ended as far as the last check told. */
bool process_set_lives(const struct process_set *set, int64_t pid);

/* Calls gone() for each whose id is free again, or another's. whole: compares start times of all
 * that have no pidfd; otherwise only of a few. */
void process_set_check(struct process_set *set, bool whole, void (*gone)(void *to, int64_t pid),
		       void *to);

#endif
