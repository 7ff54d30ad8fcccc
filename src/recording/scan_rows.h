/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of scans in a recording: one for every scan, including those that saw no thread, so that
 * averages over a recording are those of the live host. Columns are matched by name.
 */
#ifndef TSNAP_RECORDING_SCAN_ROWS_H
#define TSNAP_RECORDING_SCAN_ROWS_H

#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "recording/recording_part.h"
#include "sample/source.h"

#define SCAN_ROWS_HEADER "timestamp,weight_us,samples,threads,missing,clock_step_us"

struct scan_row {
	int64_t time_us, weight_us; /* see struct scan */
	int64_t samples;	    /* number of its rows of samples */
	int64_t threads;	    /* threads that were seen, shown or not; 0: not known */
	int64_t missing;	    /* scans before this one that were not recorded */
	int64_t clock_step_us;	    /* see struct scan; ABSENT: an earlier version recorded it */
};

struct scan_rows;

/* Makes a reader of the rows of scans; the caller owns the input. */
struct scan_rows *scan_rows_new(struct csv_input *input, const char *name);
/* Reads the next row of the part ahead; rows that can't be read are skipped and counted. 1, 0:
 * there is none, -EINTR: call again, or -errno with e. */
int scan_rows_peek(struct scan_rows *rows, struct recording_part *part, struct error *e);
/* Finds the scan of the next sample, whose time is sample_us (INT64_MAX: there is no further
 * sample). Both are in the order in which they were recorded, so that clocks may step. 1: *scan is
 * an earlier scan that saw no thread; 0: there is no such scan, and *now is the row of the sample's
 * scan, or its time is ABSENT; or as scan_rows_peek(). */
int scan_rows_find(struct scan_rows *rows, struct recording_part *part, int64_t sample_us,
		   struct scan_row *now, struct scan *scan, struct error *e);
/* Adds the numbers of scans that were not recorded, or are lost, and of rows that can't be read. */
void scan_rows_describe(const struct scan_rows *rows, struct source_status *status);
void scan_rows_free(struct scan_rows *rows); /* NULL is fine */

/* Adds a row in the form that scan_rows_peek() reads. */
void scan_row_add(struct text *text, const struct scan_row *row);

#endif
