/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical path of a process, by samples (--critical-path): what the time of its threads was
 * really spent on. For a thread that ran or was runnable in a scan, it is that. For a thread that
 * slept, the walk goes to the thread that ended this very sleep, and to what that thread did in the
 * same scan. If it slept, too, the walk goes on to the thread that woke it, and ends at a thread
 * that was awake, or at a wait that an interrupt ended.
 *
 * So a sample of a sleeper is held until its wait has ended. Each becomes a sample of the thread
 * that its path leads to, with the fields path_end to path_of_tid, and then goes the way of all
 * samples. Times are by the monotonic clock. A wait and its end are matched by time: no thread can
 * be in two sleeps at once, even if its tid is reused.
 *
 * Pure: the caller adds samples and wake-ups to the notes. Memory is bounded: when it is full, the
 * oldest scans are reported and forgotten; waits that go on count as not ended in them.
 */
#ifndef TSNAP_REPORT_CRITICAL_PATH_H
#define TSNAP_REPORT_CRITICAL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/path_notes.h"

#define PATH_LINKS_MAX 32 /* threads; a longer path is not followed to its end */

/* A zeroed path is empty. */
struct critical_path {
	bool ordered; /* samples are handed over in order of time, when they are settled */
	struct path_notes notes;
	struct sample *held; /* samples that wait for their turn, if ordered */
	size_t held_count, held_capacity;
	int64_t *led_to; /* tids that paths led to since the caller looked; may repeat */
	size_t led_to_count, led_to_capacity;
	int64_t unseen_count; /* samples whose path could not be followed */
};

typedef void path_callback(void *to, const struct sample *sample);

/* Hands over what is known after a scan and the wake-ups since the one before. No wake-up until
 * until_ns is missing. */
void critical_path_end_scan(struct critical_path *path, int64_t until_ns, path_callback *take,
			    void *to);
/* Hands over all the rest, and begins anew. Texts of samples may be freed after that. */
void critical_path_settle(struct critical_path *path, path_callback *take, void *to);
void critical_path_done(struct critical_path *path);

#endif
