/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The groups of a report, of each step of --by-time, and the exact times that they share: the part
 * that takes samples of an interval, and adds them to all parts, itself included. */
#ifndef TSNAP_REPORT_GROUPS_H
#define TSNAP_REPORT_GROUPS_H

#include "report/report.h"

/* A report by time (--by-time): the groups of each step of time, one step after the other, as rows
 * of one grid whose first column is the time. Averages and shares are those of the step.
 */
struct time_step {
	int64_t from_us;
	size_t row_end; /* end of its rows, which follow those of the step before */
};

/* A zeroed struct is disabled. */
struct time_rows {
	int64_t step_us;	 /* length of a step; 0: disabled */
	int64_t from_us;	 /* begin of the present step; ABSENT: no step has begun */
	struct tally tally;	 /* tally of the present step */
	struct column_list list; /* the time, then the columns of groups */
	struct grid grid;	 /* rows of all steps that ended */
	struct grid step_grid;
	struct time_step *steps; /* steps that ended */
	size_t step_count, step_capacity;
	int64_t refused; /* rows that did not fit */
};

extern const struct report_part groups_part;

/* Takes a sample again (struct scan, again). */
void groups_take_again(struct report *report, const struct sample *sample);
/* Adds a time before the scan in which no thread was seen to the steps of --by-time. */
void groups_add_silence(struct report *report, int64_t weight_us, int64_t from_us,
			int64_t silent_us);
/* Count a batch, and the scan of which all batches were taken, or no more will come. */
void groups_end_batch(struct report *report, const struct scan *batch);
void groups_end_scan(struct report *report, const struct scan *scan);
/* True if what is shown is the same whether a thread that waits is in each scan, or in one that
 * stands for several. */
bool groups_sum_up(const struct report *report);
/* True if what is shown may be of a few threads of a process that has many. */
bool groups_have_few(const struct report *report);

#endif
