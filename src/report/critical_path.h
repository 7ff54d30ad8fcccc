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

#include "base/index.h"
#include "sample/sample.h"
#include "sample/wakeup.h"

#define PATH_LINKS_MAX 32 /* threads; a longer path is not followed to its end */

/* Recent scans and wake-ups, for critical paths: what threads did in each scan, when their sleeps
 * ended, and which thread ended them. Episodes are kept, not samples. An episode is one scan of a
 * thread that was awake, or one sleep with all scans that saw it.
 */
#define PATH_SCANS_MAX 400	/* limit of scans that are held */
#define PATH_EPISODES_MAX 65536 /* limit of episodes in these scans, some 60 MB */
#define PATH_ENDS_MAX 65536	/* limit of other ends that threads waited for */

struct path_scan {
	int64_t scan_time_ns, time_us, weight_us;
};

/* State of the path of an episode of the process. */
enum episode_path {
	EPISODE_NONE,	   /* nothing to report, or nothing more */
	EPISODE_OPEN,	   /* path not known yet */
	EPISODE_AMBIGUOUS, /* more facts may be found: it is reported when it is forgotten */
};

struct path_episode {
	enum episode_path path;
	size_t previous;    /* previous episode of the thread, as index plus one; 0: none */
	size_t first, last; /* first and last scan */
	struct sample sample;
};

struct path_wakeup;

/* A zeroed struct is empty. */
struct path_notes {
	struct path_scan *scans;
	size_t scan_count, scan_capacity;
	struct path_episode *episodes; /* activities of threads: one scan, or one sleep */
	size_t episode_count, episode_capacity;
	struct index last_episodes; /* tid to the thread's last episode, as index plus one */
	struct path_wakeup *wakeups;
	size_t wakeup_count, wakeup_capacity;
	struct index last_wakeups; /* tid to the thread's last wake-up, as index plus one */
	struct index ends;	   /* hashes: the processes that a thread's calls have waited for */
	size_t *open;		   /* episodes of the process whose paths are not known yet */
	size_t open_count, open_capacity;
};

/* Adds the sample of a thread in a scan; own: it is a thread of the process whose path is wanted.
 * Texts of the sample must stay valid. */
void path_notes_add(struct path_notes *notes, const struct scan *scan, const struct sample *sample,
		    bool own);
void path_notes_wakeup(struct path_notes *notes, const struct wakeup *wakeup);

/* A zeroed path is empty. */
struct critical_path {
	bool ordered; /* samples are handed over in order of time, when they are settled */
	struct path_notes notes;
	struct sample *held; /* samples that wait for their turn, if ordered */
	size_t held_count, held_capacity;
	int64_t *led_to; /* tids that paths led to since the caller looked; may repeat */
	size_t led_to_count, led_to_capacity;
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
