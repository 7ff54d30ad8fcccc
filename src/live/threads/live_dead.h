/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks, execs and exits by name and user: what came since they were told last. Pure.
 *
 * The kernel's table has all that threads had used when they ended. Of a thread that was sampled a
 * part of that has been told already: it is taken off when the thread is found to be gone, which
 * can be before its end is read from the table, or after. So what is left can be negative for a
 * while, and is told when it is more than nothing. Where a thread was called otherwise when it
 * ended it is negative for good, and the next that ends under the old name makes up for it.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_DEAD_H
#define TSNAP_LIVE_THREADS_LIVE_DEAD_H

#include <stddef.h>

#include "base/keyed.h"
#include "kernel/record.h"
#include "live/threads/live_totals.h"

#define OTHERS_COMM "[others]" /* row of threads that did not fit the kernel's table */

/* Zeroed is empty and valid. */
struct dead_table {
	int64_t ended_ns;  /* up to then all has been told, monotonic; 0: since ever */
	double later;	   /* the part of what is left that came after that */
	struct keyed rows; /* struct dead_row, by uid and comm */
	bool full;	   /* the kernel's: names that have no row here are in that for others */
	uint64_t others;   /* forks and ends in that one */
	uint64_t unknown;  /* threads that ended, of whose time nothing is known */
};

/* Takes in a row as the kernel counts it now. baseline: that came before all that is to be told. */
void dead_table_read(struct dead_table *table, const struct process_key *key,
		     const struct process_totals *now, bool baseline);
/* A thread is gone: what was told of it was not the dead's. */
void dead_table_take_off(struct dead_table *table, const struct totals_gone *gone);

/* Begins an account: of the time up to end_ns, with a table that was read at read_ns. Where scans
 * wait to be looked at some threads ended between the two. Only their names are known: they are
 * taken to have ended evenly, so that of the totals' times a part is told, and the rest next time.
 */
void dead_table_end(struct dead_table *table, int64_t end_ns, int64_t read_ns);

/* The next row with something to tell, as an account in which all but comm, uid, totals (where they
 * are asked for), forks, execs and exits are absent; *at starts at 0. False at the end. */
bool dead_table_report(struct dead_table *table, size_t *at, bool totals, struct sample *account);
void dead_table_done(struct dead_table *table);

#endif
