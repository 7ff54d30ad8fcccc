/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program's memory shows of a thread's wait: a lock between its processes, and whether the
 * thread serves a client meanwhile. Found by src/apps, for waits. */
#ifndef TSNAP_SAMPLE_APP_LOCK_H
#define TSNAP_SAMPLE_APP_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct app_lock {
	bool waits;	/* the thread waits for such a lock */
	int64_t holder; /* process of one that has it; 0: not known, or it is no process */
	int64_t count;	/* number of those that have it, and whom the thread has to wait for */
};

/* Fills lock. False: the memory of the thread's process shows nothing of that. now_ns:
 * monotonic, one for each scan. */
typedef bool app_lock_finder(void *of, int64_t pid, int64_t tid, int64_t now_ns,
			     struct app_lock *lock);
/* The same: serves: the thread runs what a client has asked for, and the client waits. */
typedef bool app_serves_finder(void *of, int64_t pid, int64_t tid, int64_t now_ns, bool *serves);

#endif
