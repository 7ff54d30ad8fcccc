/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between two times of samples (--against): the few sets of column values, of at most
 * three columns, that carry the difference in thread-seconds, as "commsum backup" or "syscall futex
 * and commsum client".
 *
 * Both times come as rows, one for each combination of values, with the thread-seconds in each
 * slice of time. Samples of one wait are not independent, so a difference is held against how much
 * the slices of each time vary among themselves, at the length of slice at which they vary most,
 * and not against the number of samples; and it must be clear enough for all sets that were
 * searched.
 *
 * Sets overlap. The best one is taken first: much of the difference, much of its own time, few
 * columns. What it covers is left out then, and the search begins anew, so that no set is there
 * only because another one is.
 *
 * Pure: values are numbers that the owner gave to them.
 */
#ifndef TSNAP_REPORT_CHANGES_H
#define TSNAP_REPORT_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"

#define CHANGE_COLUMNS_MAX 24
#define CHANGE_TERMS_MAX 3
#define CHANGE_ALSO_MAX 3
#define CHANGE_SLICES_MAX 64
#define CHANGE_SLICES_LEAST 8
#define CHANGES_MAX 10

enum change_side { SIDE_BEFORE, SIDE_AFTER, SIDE_COUNT };

struct change_row {
	uint32_t values[CHANGE_COLUMNS_MAX]; /* 0: none */
	float us[SIDE_COUNT][CHANGE_SLICES_MAX];
	int64_t samples[SIDE_COUNT];
	int64_t waits[SIDE_COUNT];  /* samples of waits whose age is known */
	int64_t age_us[SIDE_COUNT]; /* sum of these ages */
};

struct change_slices {
	int64_t elapsed_us[CHANGE_SLICES_MAX];
	size_t count;	/* slices that ended */
	int64_t merged; /* number of slices, as the owner begins, that the next one is to have */
};

struct change_term {
	size_t column;
	uint32_t value;
};

/* A set of values. Threads are averages: thread-seconds per second; after: divided by the work. */
struct change {
	struct change_term terms[CHANGE_TERMS_MAX], also[CHANGE_ALSO_MAX];
	size_t term_count, also_count; /* also: what else nearly all of the difference has */
	double threads[SIDE_COUNT];
	double error; /* the difference is within this bound in 95 of 100 cases */
	int64_t samples[SIDE_COUNT];
	double age_us[SIDE_COUNT]; /* mean age of its waits when seen; 0: most of it are no waits */
};

/* Zeroed but for the numbers of columns: empty and valid. */
struct changes {
	size_t column_count;
	size_t program_column,
		state_column; /* whose threads on a CPU tell how much work was done */
	uint32_t on_value;    /* of the state: on a CPU */
	struct keyed rows;    /* struct change_row */
	struct change_slices slices[SIDE_COUNT];
	/* when found: */
	struct change found[CHANGES_MAX];
	size_t count, more; /* more: that were found, too, and are not in the list */
	size_t searched;    /* sets */
	double threads[SIDE_COUNT];
	double work;	     /* work of a program per second, after / before; 0: not known */
	double work_error;   /* its standard error, as a share of it */
	size_t programs;     /* of which that is the median */
	bool normalised;     /* times after are divided by it */
	struct text refused; /* why nothing was searched; empty: it was */
};

/* Adds to the present slice of a side. values: one for each column. */
void changes_add(struct changes *changes, enum change_side side, const uint32_t *values, int64_t us,
		 int64_t samples, int64_t waits, int64_t age_us);
/* Ends the present slice of a side. */
void changes_end_slice(struct changes *changes, enum change_side side, int64_t elapsed_us);
void changes_find(struct changes *changes);
void changes_done(struct changes *changes);

static inline double change_difference(const struct change *change)
{
	return change->threads[SIDE_AFTER] - change->threads[SIDE_BEFORE];
}

/* True if the set had next to no time on that side: it is new, or gone. */
static inline bool change_lacks(const struct change *change, enum change_side side)
{
	return change->threads[side] * 20 < change->threads[!side];
}

/* How many times as long its waits are, and as often there are waits; false: not known. */
bool change_waits(const struct change *change, double *longer, double *oftener);

#endif
