/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The critical path of a process, by samples (--critical-path): what the time of its threads really
 * was. A thread that ran or was runnable in a scan had that. For one that slept the walk goes to
 * the thread that ended this very sleep, and to what that one did in the same scan: if it slept,
 * too, on to the one that woke it; until a thread that was awake, or a wait that an interrupt
 * ended.
 *
 * So a sample of a sleeper is held until its wait has ended. Each becomes a sample of the thread
 * that its path leads to, with the fields path_end to path_of_tid, and then goes the way of all
 * samples. Times are by the monotonic clock. A wait and its end are matched by time: no thread can
 * be in two sleeps at once, whoever has its tid before or after.
 *
 * Pure: samples and wake-ups come from the caller. In bounded memory: when that is full, the oldest
 * scans are told, in which waits that go on count as not ended, and forgotten.
 */
#ifndef TSNAP_REPORT_CRITICAL_PATH_H
#define TSNAP_REPORT_CRITICAL_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/sample.h"
#include "sample/wakeup.h"

#define PATH_LINKS_MAX 32	/* threads of a path; a longer one is not seen to its end */
#define PATH_SCANS_MAX 400	/* scans that are held */
#define PATH_EPISODES_MAX 65536 /* episodes in the scans that are held, some 60 MB */
#define PATH_ENDS_MAX 65536	/* other ends of what threads waited for */

struct path_scan;
struct path_episode;
struct path_wakeup;

/* Zeroed is one that nobody asked for. */
struct critical_path {
	bool wanted;
	bool ordered; /* samples are handed over in the order of time, when they are settled */
	struct path_scan *scans;
	size_t scan_count, scan_capacity;
	struct path_episode *episodes; /* activities of threads: one scan, or one sleep */
	size_t episode_count, episode_capacity;
	struct index last_episodes; /* tid to the thread's last episode, as index plus one */
	struct path_wakeup *wakeups;
	size_t wakeup_count, wakeup_capacity;
	struct index last_wakeups;
	struct index ends; /* by hash: which processes a thread's calls have waited for */
	size_t *open;	   /* episodes of the process whose paths are not known yet */
	size_t open_count, open_capacity;
	struct sample *held; /* samples that wait for their turn, if ordered */
	size_t held_count, held_capacity;
	int64_t *led_to; /* threads that paths led to since the caller looked, some more often */
	size_t led_to_count, led_to_capacity;
	int64_t unseen_count; /* samples whose path could not be followed */
};

typedef void path_taker(void *to, const struct sample *sample);

/* Adds the sample of a thread in a scan; own: of the process that was asked for. */
void critical_path_add(struct critical_path *path, const struct scan *scan,
		       const struct sample *sample, bool own);
void critical_path_wakeup(struct critical_path *path, const struct wakeup *wakeup);
/* After a scan, and the wake-ups since the one before: hands over what is known by now. No wake-up
 * until until_ns is missing. */
void critical_path_end_scan(struct critical_path *path, int64_t until_ns, path_taker *take,
			    void *to);
/* Hands over all the rest, and begins anew. Texts of samples may go then. */
void critical_path_settle(struct critical_path *path, path_taker *take, void *to);
void critical_path_done(struct critical_path *path);

#endif
