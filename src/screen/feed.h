/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a source of scans into a history. */
#ifndef TSNAP_SCREEN_FEED_H
#define TSNAP_SCREEN_FEED_H

#include "sample/source.h"
#include "screen/history.h"
#include "screen/shown.h"

/* Needs that a history keeps of every sample, if nobody says more: none that attaches a probe which
 * a report would not have (NEED_*). */
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
	bool traces;	     /* set by who opened the source: it traces, and that is kept, too */
	int64_t last_us;     /* time of the last scan; 0: there was none */
	int64_t period_us;   /* between scans; 0: not known */
	bool changed;	     /* the source has not delivered a scan yet, an earlier one has */
	uint64_t lost_count; /* scans that were due between two sources */
	struct source_status before; /* missed: rows of all earlier sources, summed */
	int64_t account_us;	     /* time of the last accounts */
	int64_t reported_us, reported_cpu_ns;
};

/* Has the source hand its samples to the history. Neither is owned. */
void feed_begin(struct feed *feed, struct source *source, struct history *history);
/* Takes the scans that the source made until that time, UTC; some may be after it. As feed_next().
 */
int feed_finish(struct feed *feed, int64_t until_us, struct error *e);
/* Goes on with another source. What the present one has missed stays told; it may be closed then.
 */
void feed_change(struct feed *feed, struct source *source);
/* Waits for the next scan and adds it. As source->next(). */
int feed_next(struct feed *feed, struct error *e);
/* Fills what is told of the source: facts and tsnap's own cost since the last call. */
void feed_describe(struct feed *feed, struct shown_source *reported);

#endif
