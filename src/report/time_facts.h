/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What threads did, by step of time: so that a page can show any stretch of a report (--html).
 *
 * A fact is what samples have in common: the row of the report that they belong to, the thread's
 * name, state and system call, what it waits for, and its stack. For each fact and step there is a
 * cell with the time that samples stand for; a sample of a second is spread over the steps of that
 * second. Steps begin at a tenth of a second, or at the time between two scans, and become longer
 * as time goes on, or where most scans are farther apart: there are STEPS_MAX at most.
 *
 * Memory is bounded: when there are too many facts, those of further samples are a state and a
 * wait, without a row, a name or a stack; when there are too many cells, steps become longer.
 */
#ifndef TSNAP_REPORT_TIME_FACTS_H
#define TSNAP_REPORT_TIME_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/column_list.h"
#include "sample/sample.h"

#define STEPS_MAX 362 /* an hour of ten seconds each, and the ends of it */
#define TIME_FACTS_MAX (1u << 14)
#define TIME_WAITS_MAX 1024 /* further facts that are a state and a wait alone */

/* Texts are interned; NULL: absent. */
struct time_fact {
	uint64_t row; /* time_facts_row() of its samples; 0: none */
	int64_t state;
	const char *wait; /* in short; NULL: it does not wait, or for what is not known */
	const char *comm, *syscall, *stack;
	int64_t weight_us;
};

struct time_cell {
	size_t fact; /* index */
	int64_t step;
	int64_t us;
};

struct time_step_scanned {
	int64_t step;
	int64_t us; /* time that its scans stand for */
};

/* A zeroed struct is empty. */
struct time_facts {
	const struct column_list *rows; /* columns of the report; the keys distinguish rows */
	int64_t step_us;		/* 0: no scan yet */
	int64_t first, last; /* numbers of steps: a step begins at number * step_us, UTC */
	int64_t scan_us;     /* time that the samples of the present scan stand for */
	int64_t scans,
		long_scans; /* since steps became longer; those that a step is too short for */
	struct keyed facts; /* struct time_fact */
	struct keyed cells; /* struct time_cell */
	struct keyed steps; /* struct time_step_scanned; those without a scan are missing */
};

/* Needs of the samples, NEED_*, beside those of the report's columns. */
uint64_t time_facts_needs(void);
/* Begins a scan, or a batch of it. */
void time_facts_begin(struct time_facts *facts, const struct scan *batch);
/* Adds a sample. again: for scans after it, which skipped its thread (struct scan, again). */
void time_facts_add(struct time_facts *facts, const struct sample *sample, bool again);
/* Adds the time of a scan, and of the silence before it. */
void time_facts_end(struct time_facts *facts, const struct scan *scan);
/* Identity of the row with these values of the columns, or of the sample's row. */
uint64_t time_facts_row(const struct column_list *columns, const union value *values);
void time_facts_clear(struct time_facts *facts);

#endif
