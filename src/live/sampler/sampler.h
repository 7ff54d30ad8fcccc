/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that scans: it sleeps until a tick, copies (live_capture.h), puts the copy into a
 * queue and sleeps again. It waits for no other thread: the one that makes samples of the copies
 * may be slow in looking things up, in writing, or for want of a CPU, and yet no scan is late,
 * unless the queue is full. Scans that can't be begun then are counted, not made up for. From half
 * of the queue's memory on scans have stacks only of threads that are on a CPU or have just left
 * it.
 *
 * The time between ticks is random, about half a period to one and a half, and the thread sleeps
 * before each tick: at a fixed rate a thread that works once in every period would be seen at work
 * in each scan or in none.
 *
 * One other thread takes the copies, in the order of their scan times, and gives each back.
 */
#ifndef TSNAP_LIVE_SAMPLER_SAMPLER_H
#define TSNAP_LIVE_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "live/sampler/live_capture.h"

/* Reasons why a scan came late. */
enum late_why { LATE_WORK, LATE_WAIT, LATE_GROWTH, LATE_COUNT };

struct sampler_options {
	struct capture_wants wants; /* the filter is copied, see sampler_return() */
	struct realtime realtime;   /* priority as realtime_init() left it */
	int64_t period_ns, due_ns;  /* due_ns: the first tick, monotonic */
	bool registers_early; /* switches keep registers some time before a scan and after it */
};

struct sampler_status {
	uint64_t late_count[LATE_COUNT];
	uint64_t over_count;  /* scans that used up their time at real-time priority */
	uint64_t moved_count; /* scans at the time when tsnap began, not when they were due */
	uint64_t torn_count, unfinished_count; /* counts of struct thread_table */
};

struct sampler;

/* Starts the thread. 0, or -errno: there can be no thread. */
int sampler_begin(struct sampler **sampler, const struct sampler_options *options);
void sampler_end(struct sampler *sampler); /* frees it, too; NULL is fine */

/* Waits for the next scan. The calling thread may get its CPU at real-time priority for a moment,
 * as far as realtime (its own) allows. 0; -EINTR: a signal came first. */
int sampler_take(struct sampler *sampler, struct realtime *realtime, struct live_capture **capture);
/* keys: of records that scans are to copy until the next call, although they are settled. filter:
 * as given to sampler_begin(), whose ids may have changed since. */
void sampler_return(struct sampler *sampler, struct live_capture *capture, const struct index *keys,
		    const struct filter *filter);

/* Ends the thread for a while, in which records can be moved to other maps. Copies that were not
 * taken yet are lost, and counted as late for that. */
void sampler_pause(struct sampler *sampler);
int sampler_resume(struct sampler *sampler); /* starts the thread again; 0 or -errno */

/* Excuses scans that could not be begun until now, so that they are not counted as late: there was
 * more to do than there ever will be. */
void sampler_excuse(struct sampler *sampler);

/* Reads the status. sampler NULL: all values are 0. */
void sampler_status_read(struct sampler *sampler, struct sampler_status *status);

/* Returns the lock that another thread must hold while it requests registers. */
pthread_mutex_t *sampler_requesting(struct sampler *sampler);

#endif
