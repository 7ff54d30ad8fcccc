/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks, execs and exits by name and user, since they were last reported. Pure.
 *
 * The kernel's table has all that threads had used when they ended. Samples have already reported a
 * part of that for a sampled thread. That part is taken off when the thread is found to be gone,
 * which can be before its end is read from the table, or after. So what is left can be negative for
 * a while, and is reported when it is positive. Where a thread had another name when it ended, what
 * is left stays negative, and the next thread that ends under the old name makes up for it.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_DEAD_H
#define TSNAP_LIVE_THREADS_LIVE_DEAD_H

#include <stddef.h>

#include "base/index.h"
#include "kernel/record.h"
#include "live/threads/live_totals.h"

#define OTHERS_COMM "[others]" /* row of threads that did not fit the kernel's table */

/* A zeroed struct is empty and valid. */
struct dead_table {
	int64_t ended_ns;  /* end of the previous account, monotonic; 0: there was none */
	double later;	   /* part of what is left that came after ended_ns */
	struct keyed rows; /* struct dead_row, by uid and comm */
	bool full; /* the kernel's table is: names without a row here are in its row for others */
	uint64_t others;  /* forks, execs and exits in the row for others */
	uint64_t unknown; /* threads that ended, and whose times are not known */
};

/* Takes in a row as the kernel counts it now. baseline: its counts are from before all that is to
 * be reported. */
void dead_table_read(struct dead_table *table, const struct process_key *key,
		     const struct process_totals *now, bool baseline);
/* Takes off what samples have reported of a thread that is gone: it is not reported again. */
void dead_table_take_off(struct dead_table *table, const struct totals_gone *gone);

/* Begins an account of the time up to end_ns, with a table that was read at read_ns. Where scans
 * wait to be looked at, some threads ended between the two. Only their names are known, so it is
 * assumed that they ended evenly: a part of the totals' times is reported now, and the rest next
 * time. */
void dead_table_end(struct dead_table *table, int64_t end_ns, int64_t read_ns);

/* Finds the next row with something to report, as an account in which all but comm, uid, totals (if
 * requested), forks, execs, exits and dead_cpu_us are absent; *at starts at 0. False at the end. */
bool dead_table_report(struct dead_table *table, size_t *at, bool totals, struct sample *account);
void dead_table_done(struct dead_table *table);

#endif
