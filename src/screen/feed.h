/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds the scans of a source to a history. */
#ifndef TSNAP_SCREEN_FEED_H
#define TSNAP_SCREEN_FEED_H

#include "sample/source.h"
#include "screen/history.h"
#include "screen/shown.h"

/* Needs kept of threads whose waits are traced: facts that are known of a thread at any time. */
#define FEED_TRACE_NEEDS ((NEEDS_SHOWN & NEEDS_ANYTIME) | NEED_SYSCALL)

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
