/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares the exact times of threads out among groups, at the end of an interval: a ratio estimate.
 *
 * Example: a thread was on a CPU for exactly 2.00 s; 30 of its samples there are of one group and
 * 10 of another, so these get 1.50 s and 0.50 s. Time in a run queue, in state D and asleep is
 * shared out likewise. Time in a state that no sample of the thread saw goes to a group that has
 * the keys which the thread keeps (its name, user, process ...) and the state, and nothing for keys
 * that only samples have. Where a time is not known, or not to be shared out, samples count with
 * their weights.
 *
 * A table keeps the groups of its samples for each thread and state. The sums of cpu_us, runq_us,
 * dwait_us and sleep_us in its groups are shared out, too, so that they agree with the groups by
 * state.
 */
#ifndef TSNAP_REPORT_GROUP_SPLIT_H
#define TSNAP_REPORT_GROUP_SPLIT_H

#include "report/exact_times.h"
#include "report/group.h"

/* Groups that get the time that no sample saw. */
enum split_rest {
	REST_NOWHERE, /* none; for a second table beside one that has this time */
	REST_GROUPS,
	REST_LARGE_GROUPS, /* groups; those of less than REST_LEAST_US are merged into one */
	REST_LEFT_OUT, /* none; for a table of some samples of each thread, while the times are of
			  all samples */
};

#define REST_LEAST_US 5000 /* less prints as 0.00 s in a report */

/* Enables sharing out; call after group_table_init(). times: may serve several tables, and must
 * outlive the table. */
void group_table_split(struct group_table *table, struct exact_times *times, enum split_rest rest);
/* Adds a sample. note: what exact_times_add() returned for it; ignored where the table has no
 * split, as samples are counted then. Returns the sample's share, valid until the table shares out;
 * GROUP_NONE: none. */
uint32_t group_table_add_noted(struct group_table *table, const struct sample *sample,
			       struct exact_note note);
/* Has the CPU read what leads to the group of a later sample, and the group of a sooner one. */
void group_table_prefetch(struct group_table *table, const struct sample *sooner,
			  const struct sample *later);
/* Adds a sample to a share that group_table_add_noted() returned for one of the same part and keys.
 */
void group_table_add_again(struct group_table *table, const struct sample *sample, uint32_t share,
			   bool began);
/* True if the table must share out before more is added. */
bool group_table_crowded(const struct group_table *table);
/* Shares out what was added so far. All tables of the same times must do so before those are
 * cleared. Does nothing where samples are counted. */
void group_table_share_out(struct group_table *table);

/* The same of all tables of these times; sharing out clears the times. */
bool group_tables_crowded(const struct exact_times *times);
void group_tables_share_out(struct exact_times *times);

/* Fills the exact times of the tally; call after group_table_share_out(). */
void group_table_end_interval(struct group_table *table, struct tally *tally);

/* The exact time that a sample stands for, after a table with the same times has shared them out
 * and before they are cleared; the sample's weight where that time is not known. */
int64_t exact_sample_us(const struct exact_times *times, const struct sample *sample);

/* The standard error of the group's weight; ABSENT: not known. */
int64_t group_error_us(const struct group_table *table, size_t index);

#endif
