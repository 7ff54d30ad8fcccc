/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds the scans of a source to a history. */
#ifndef TSNAP_SCREEN_FEED_H
#define TSNAP_SCREEN_FEED_H

#include "sample/source.h"
#include "screen/history.h"
#include "screen/shown.h"

/* Needs that a history keeps of every sample by default: none that attaches a probe which a report
 * would not have (NEED_*). */
#define FEED_NEEDS                                                                          \
	(NEED_USER | NEED_COMM | NEED_COMMSUM | NEED_EXE | NEED_SYSCALL | NEED_WAIT_CLASS | \
	 NEED_FILE | NEED_FILENAMESUM | NEED_FILETYPE | NEED_CONNECTION | NEED_WAITS |      \
	 NEED_CGROUP | NEED_CGROUP_NAMES | NEED_PPID | NEED_PROCESSES | NEED_WAKER |        \
	 NEED_WAKER_COMM | NEED_TOTALS)

/* Needs kept of threads whose waits are traced: facts that are known of a thread at any time. */
#define FEED_TRACE_NEEDS                                                                        \
	(NEED_USER | NEED_COMMSUM | NEED_EXE | NEED_SYSCALL | NEED_CGROUP | NEED_CGROUP_NAMES | \
	 NEED_PPID)

struct feed {
	struct source *source;
	struct history *history;
	bool traces;		     /* set by the owner: what the source traces is kept, too */
	int64_t last_ns;	     /* monotonic time of the last scan; 0: none, or a recording */
	int64_t period_us;	     /* time between scans; 0: not known */
	bool changed;		     /* an earlier source has delivered scans, this one none yet */
	uint64_t lost_count;	     /* scans that were due between the last source and this one */
	struct source_status before; /* counts of what earlier sources missed */
	int64_t account_ns;	     /* monotonic time of the last accounts */
	int64_t reported_us, reported_cpu_ns;
};

/* Makes the source deliver its samples to the history. Takes ownership of neither. */
void feed_begin(struct feed *feed, struct source *source, struct history *history);
/* Takes the scans that the source made until that monotonic time; some may be after it. Returns
 * what feed_next() does. */
int feed_finish(struct feed *feed, int64_t until_ns, struct error *e);
/* Goes on with another source, so that the present one may be closed. Keeps the counts of what that
 * one missed. */
void feed_change(struct feed *feed, struct source *source);
/* Waits for the next scan and adds it. Returns what source->next() does. */
int feed_next(struct feed *feed, struct error *e);
/* Fills what the screen shows of the source: its status, and tsnap's own CPU time since the last
 * call. */
void feed_describe(struct feed *feed, struct shown_source *reported);

#endif
