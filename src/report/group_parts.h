/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures of a row that are made of its parts: the time in each state, the call and the wait that
 * have most of the time, the processes of a program.
 *
 * A table whose list has such measures groups samples by more keys than its rows have: by the keys
 * of its parts, which come after those of its rows. Exact times are shared out among the parts.
 * group_parts_fill() puts the parts of each row together.
 */
#ifndef TSNAP_REPORT_GROUP_PARTS_H
#define TSNAP_REPORT_GROUP_PARTS_H

#include "report/group.h"
#include "report/tally.h"

/* What a row's parts say beside their sums. */
struct row_parts {
	int64_t state_us[STATE_COUNT]; /* weights as in tally_avg_thr() */
	int64_t longest_us;	       /* ABSENT: no part waits */
	int64_t pid, pids;	       /* one of the processes, and their number */
	double variance;	       /* of the weight, in us * us */
	const char *comm;	       /* NULL: not known, or several */
	bool comms;		       /* there are several */
	const char *program, *mostly_in, *waits_for;
};

/* A zeroed struct is empty. */
struct group_parts {
	struct group_table rows; /* the groups, by the keys of rows alone */
	struct row_parts *of;	 /* for each of its groups */
	bool errors;		 /* standard errors are computed */
};

/* Puts the parts of each row together; call after their times are shared out. */
void group_parts_fill(struct group_parts *parts, const struct group_table *table,
		      const struct tally *tally);
/* Sets the measures of a row that are made of its parts. */
void group_parts_measure(const struct group_parts *parts, size_t row, const struct tally *tally,
			 struct measures *measures);
void group_parts_done(struct group_parts *parts);

#endif
