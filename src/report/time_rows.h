/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report by time (--by-time): the groups of each step of time, one step after the other, as rows
 * of one grid whose first column is the time. Averages and shares are those of the step.
 */
#ifndef TSNAP_REPORT_TIME_ROWS_H
#define TSNAP_REPORT_TIME_ROWS_H

#include "report/exact_times.h"
#include "report/grid.h"

#define TIME_ROWS_MAX (1u << 18)

struct time_step {
	int64_t from_us;
	size_t row_end; /* end of its rows, which follow those of the step before */
};

/* A zeroed struct is disabled. */
struct time_rows {
	int64_t step_us;	   /* length of a step; 0: disabled */
	int64_t from_us;	   /* begin of the present step; ABSENT: no step has begun */
	struct tally tally;	   /* tally of the present step */
	struct exact_times *times; /* exact times of the groups; NULL: samples are counted */
	struct column_list list;   /* the time, then the columns of groups */
	struct grid grid;	   /* rows of all steps that ended */
	struct grid step_grid;
	struct time_step *steps; /* steps that ended */
	size_t step_count, step_capacity;
	int64_t refused; /* rows that did not fit */
};

/* list: columns of the groups; must outlive the rows. */
void time_rows_init(struct time_rows *rows, int64_t step_us, const struct column_list *list);
/* Call before samples of that time are added to groups and tally. If another step begins then, the
 * groups of the step before become rows, and are cleared. */
void time_rows_begin(struct time_rows *rows, int64_t time_us, struct group_table *groups);
/* True if the present step ends before that time: all tables with the same exact times must share
 * out first. */
bool time_rows_end_at(const struct time_rows *rows, int64_t time_us);
/* Ends the last step. */
void time_rows_end(struct time_rows *rows, struct group_table *groups);
void time_rows_done(struct time_rows *rows);

#endif
