/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time of a scan that edges may take: for the threads of one user three eighths of the period, but
 * not less than 20 ms, and twice that for all, so that ten thousand threads, each waiting for the
 * next, cost others neither their scans nor their edges. It is over only when this thread has run
 * for that long. For live_chains.c. */
#ifndef TSNAP_LIVE_CHAINS_LIVE_EDGE_TIME_H
#define TSNAP_LIVE_CHAINS_LIVE_EDGE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"

/* Zeroed: none. */
struct live_edge_time {
	int64_t left_ns, user_most_ns; /* time of this scan: left for all, most for one user */
	int64_t cpu_ns;		       /* CPU time of this thread at the scan's begin */
	int64_t since_ns;	       /* monotonic; time until then has been counted */
	struct index users;	       /* uid to what its threads have taken, in ns */
	struct index owners;	       /* pid to the uid that it had in this second */
	int64_t owners_ns;
	uint64_t refused_count; /* edges that there was no time for, since the start */
};

/* Begins a new scan. */
void live_edge_time_begin(struct live_edge_time *time, int64_t now_ns, int64_t period_ns);
/* Returns the uid of a process, from /proc: records of threads that sleep since before the start
 * have none. */
int64_t live_edge_time_user(struct live_edge_time *time, int64_t pid);
/* Resumes the count: edges are looked for from now on, after other work. */
void live_edge_time_resume(struct live_edge_time *time);
/* True if there is time for an edge of that user's thread; else the refusal is counted. */
bool live_edge_time_left(struct live_edge_time *time, int64_t uid);
/* Counts the time since the last edge was taken as that user's. */
void live_edge_time_take(struct live_edge_time *time, int64_t uid);
void live_edge_time_done(struct live_edge_time *time);

#endif
