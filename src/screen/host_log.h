/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel and JVMs counted of the host in the last ten minutes, for the findings of a
 * window: of devices, listeners, requests that nobody reads, and JVMs.
 */
#ifndef TSNAP_SCREEN_HOST_LOG_H
#define TSNAP_SCREEN_HOST_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/source.h"

#define HOST_LOG_STEP_US (5 * US_PER_SECOND) /* some 7 ms for each */
#define HOST_LOG_ENTRIES 121

/* A zeroed struct is valid. Any thread may add and take. */
struct host_log {
	pthread_mutex_t mutex;
	struct host_log_entry *entries; /* a ring */
	uint64_t count;			/* that were added so far */
};

/* True if the last entry is older than a step. Times are in us since 1970. */
bool host_log_is_due(struct host_log *log, int64_t time_us);
/* Adds the status of that time. */
void host_log_add(struct host_log *log, int64_t time_us, const struct source_status *status);
/* Replaces the counts of the status by those of the window, from_us to until_us. Where the log has
 * no entries near enough there are none. elapsed_us: the time that the window's scans stand for: a
 * device's requests become those of that time. */
void host_log_take(struct host_log *log, int64_t from_us, int64_t until_us, int64_t elapsed_us,
		   struct source_status *status);
void host_log_done(struct host_log *log);

#endif
