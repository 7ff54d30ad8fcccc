/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recent scans and wake-ups, for critical paths: what threads did in each scan, when their sleeps
 * ended, and which thread ended them. Episodes are kept, not samples. An episode is one scan of a
 * thread that was awake, or one sleep with all scans that saw it. Pure. For critical_path.c.
 */
#ifndef TSNAP_REPORT_PATH_NOTES_H
#define TSNAP_REPORT_PATH_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/sample.h"
#include "sample/wakeup.h"

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
/* Returns what the thread did in that scan; NULL: it has no sample there. */
const struct path_episode *path_episode_find(const struct path_notes *notes, int64_t tid,
					     size_t scan);
/* Returns the end of the sleep that the thread was in at the scan; NULL: not reported. */
const struct wakeup *path_wakeup_find(const struct path_notes *notes, int64_t tid, size_t scan);
/* True if the sample's call is known with its first argument. */
bool path_names_call(const struct sample *sample);
/* True if the sleeper's wait is one for the process of the waker, by what is known of this wait or
 * of earlier waits in the same call; waker may be NULL. */
bool path_waits_for(const struct path_notes *notes, const struct path_episode *sleeper,
		    const struct path_episode *waker);
bool path_notes_full(const struct path_notes *notes);
/* Forgets the scans before `from`, and the episodes and wake-ups that are only in these. */
void path_notes_forget(struct path_notes *notes, size_t from);
void path_notes_done(struct path_notes *notes);

static inline bool path_is_awake(const struct sample *sample)
{
	return sample->now.state == STATE_ON || sample->now.state == STATE_RQ;
}

#endif
