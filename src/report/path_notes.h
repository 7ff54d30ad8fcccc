/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans and wake-ups of the last while, for critical paths: what threads did in each scan, when
 * their sleeps ended and by whom. Episodes are kept, not samples: one scan of a thread that was
 * awake, or one sleep with all scans that saw it. Pure. For critical_path.c.
 */
#ifndef TSNAP_REPORT_PATH_NOTES_H
#define TSNAP_REPORT_PATH_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/sample.h"
#include "sample/wakeup.h"

#define PATH_SCANS_MAX 400	/* scans that are held */
#define PATH_EPISODES_MAX 65536 /* episodes in the scans that are held, some 60 MB */
#define PATH_ENDS_MAX 65536	/* other ends of what threads waited for */

struct path_scan {
	int64_t scan_time_ns, time_us, weight_us;
};

/* Path of an episode of the process. */
enum episode_path {
	EPISODE_NONE,	   /* there is nothing to tell, or no more */
	EPISODE_OPEN,	   /* not known yet */
	EPISODE_AMBIGUOUS, /* more may be found out about it: it is told when it is forgotten */
};

struct path_episode {
	enum episode_path path;
	size_t previous;    /* the thread's episode before, as index plus one; 0: none */
	size_t first, last; /* scans */
	struct sample sample;
};

struct path_wakeup;

/* Zeroed is empty. */
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

/* Adds the sample of a thread in a scan; own: of the process whose path is wanted. Texts of the
 * sample are kept. */
void path_notes_add(struct path_notes *notes, const struct scan *scan, const struct sample *sample,
		    bool own);
void path_notes_wakeup(struct path_notes *notes, const struct wakeup *wakeup);
/* Returns what the thread did in that scan; NULL: it has no sample there. */
const struct path_episode *path_episode_find(const struct path_notes *notes, int64_t tid,
					     size_t scan);
/* Returns the end of the sleep that the thread was in at the scan; NULL: not told. */
const struct wakeup *path_wakeup_find(const struct path_notes *notes, int64_t tid, size_t scan);
/* True if the sample's call is known with its first argument. */
bool path_names_call(const struct sample *sample);
/* True if the sleeper's wait is one for the process of the waker, by what is known of it or of
 * earlier waits in the same call; waker may be NULL. */
bool path_waits_for(const struct path_notes *notes, const struct path_episode *sleeper,
		    const struct path_episode *waker);
bool path_notes_full(const struct path_notes *notes);
/* Forgets the scans before `from`, and of episodes and wake-ups what is of these alone. */
void path_notes_forget(struct path_notes *notes, size_t from);
void path_notes_done(struct path_notes *notes);

static inline bool path_is_awake(const struct sample *sample)
{
	return sample->state == STATE_ON || sample->state == STATE_RQ;
}

#endif
