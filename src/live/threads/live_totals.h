/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each thread's running totals as of its previous sample, so that samples carry exact differences.
 *
 * A thread is always in one of four states, so what its totals gain in a time is that time. Where a
 * kernel runs no program at some of its switches (it may hide tasks from BPF; kernels with perf
 * tracepoints skip some) they gain more or less: such times are absent, not wild.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_TOTALS_H
#define TSNAP_LIVE_THREADS_LIVE_TOTALS_H

#include <stddef.h>

#include "base/clock.h"
#include "base/index.h"
#include "live/threads/live_sample.h"

/* Times that do not add up for so long are never reported. */
#define TOTALS_HIDDEN_NS (10 * NS_PER_SECOND)

struct totals_row;

/* A thread that is gone. */
struct totals_gone {
	const char *comm;	     /* name in its last sample or account, valid during the call */
	int64_t uid;		     /* uid in its record then */
	struct live_totals reported; /* until_ns: scan time of the last report; 0: not known */
};

struct totals_table {
	/* Callback for each thread that is forgotten; NULL: there is none. */
	void (*gone)(void *to, const struct totals_gone *gone);
	void *to;
	int64_t at_ns;		   /* time of the last totals that were taken, monotonic */
	int64_t swept_ns;	   /* time of the last sweep */
	struct id_map rows_by_tid; /* tid to index in rows, plus one */
	struct totals_row *rows;
	size_t count, capacity, free_row; /* free_row: index plus one of a list of unused rows */
	int64_t read_ns;     /* time before which the records were read, monotonic; 0: now */
	int64_t begun_ns;    /* time of the oldest possible record, monotonic; 0: not known */
	int64_t reported_ns; /* start of the time that the first scan stands for; 0: begun_ns */
	int64_t end_ns;	     /* time up to which totals are taken; 0: all are */
	bool lacks_sleeps;   /* disk_ns and sleep_ns of totals are not known */
	size_t hidden_count; /* threads whose last times did not add up */
};

/* Fills cpu_us .. ivcsw of sample with what came since the thread's previous sample (its first:
 * since reported_ns; what came before, while tsnap began, is left out in proportion), and keeps now
 * for the next. Where that is not the time that has gone by, these fields are ABSENT, and are
 * reported later if they add up again within TOTALS_HIDDEN_NS. Totals from before table->at_ns have
 * nothing new: their scan was copied before an account, and is looked at after it. */
void totals_take(struct totals_table *table, const struct live_totals *now, struct sample *sample);

/* True if totals_take() would find nothing but sleep for the thread. */
bool totals_only_slept(struct totals_table *table, const struct live_totals *now, int64_t tid,
		       int64_t start_ns);

/* True if a sleeping thread with these totals, as its record has them, was not switched since its
 * totals were taken, or has never run; it is marked then. */
bool totals_stand(struct totals_table *table, const struct live_totals *now, int64_t tid);

/* Adds totals from before the present ones began to count: they have been reported of the thread,
 * or are still to be. */
void totals_carry(struct totals_table *table, const struct live_totals *before,
		  const struct sample *sample);

/* Forgets threads that are gone: mark those that are there, then sweep the others. Marks since the
 * last sweep can be taken back. */
void totals_unmark(struct totals_table *table);
void totals_mark(struct totals_table *table, int64_t tid);
void totals_sweep(struct totals_table *table);
void totals_done(struct totals_table *table);

#endif
