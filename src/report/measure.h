/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns that a group of a report has in addition to those of its samples: rows as in
 * sample_columns[], read from a struct measures. */
#ifndef TSNAP_REPORT_MEASURE_H
#define TSNAP_REPORT_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "sample/column.h"

#define MEASURE_STATES 4

struct measures {
	int64_t samples;
	int64_t avg_thr; /* hundredths */
	int64_t seconds; /* hundredths */
	int64_t share;	 /* per mille */
	int64_t error;	 /* thousandths of a second; ABSENT where samples are counted */
	/* exact values; ABSENT where they were not counted */
	int64_t cpu_s, runq_s, dwait_s, sleep_s, dead_cpu_s; /* thousandths */
	int64_t csw_per_s;				     /* hundredths */
	int64_t runq_avg_us;
	int64_t forks, execs, exits, new_threads;
	int64_t hardirq_s, softirq_s, steal_s; /* thousandths */
	/* of the group's parts (grid.c): threads in ON, RQ, D and S, in hundredths */
	int64_t state_thr[MEASURE_STATES];
	int64_t longest_ns; /* ABSENT: none waits */
	const char *program, *mostly_in, *waits_for, *main_chain, *main_file, *function;
};

/* Sums over a group's samples and accounts, for the exact measures: rows of struct sample, without
 * names. */
enum measure_sum {
	SUM_CPU_US,
	SUM_RUNQ_US,
	SUM_DWAIT_US,
	SUM_SLEEP_US,
	SUM_VCSW,
	SUM_IVCSW,
	SUM_FORKS,
	SUM_EXECS,
	SUM_EXITS,
	SUM_DEAD_CPU_US,
	SUM_NEW_THREADS,
	SUM_HARDIRQ_US,
	SUM_SOFTIRQ_US,
	SUM_STEAL_US,
	MEASURE_SUMS
};

extern const struct column measure_sums[MEASURE_SUMS];

#define NEEDS_OF_SUMS \
	(NEED_TOTALS | NEED_PROCESSES | NEED_INTERRUPTS) /* needs of columns that use the sums */

/* A measure that is made of the parts of a row (report/grid.c). */
struct part_measure {
	size_t offset;	   /* in struct measures */
	const char *rows;  /* keys that distinguish rows beside those of the list; NULL: none */
	const char *parts; /* keys of parts; those of which other columns are read come last */
};

/* NULL: the column is no such measure. */
const struct part_measure *part_measure_of(const struct column *column);

extern const struct column measure_columns[];
extern const size_t measure_column_count;

struct tally;

/* Measures of a group with these samples in the report that tally counts; the error is left to the
 * caller. sums: MEASURE_SUMS values, or NULL. */
struct measures measures_of(int64_t samples, int64_t weight_us, const union value *sums,
			    const struct tally *tally);
/* True if the sums have no time but sleep. */
bool measure_sums_idle(const union value *sums);

#endif
