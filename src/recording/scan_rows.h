/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of scans in a recording: one for every scan, also of those that saw nobody, so that
 * averages over a recording are those of the live host. Columns are matched by name.
 */
#ifndef TSNAP_RECORDING_SCAN_ROWS_H
#define TSNAP_RECORDING_SCAN_ROWS_H

#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "recording/recording_part.h"
#include "sample/source.h"

#define SCAN_ROWS_HEADER "timestamp,weight_us,samples,threads,missing"

struct scan_row {
	int64_t time_us, weight_us; /* see struct scan */
	int64_t samples;	    /* rows of samples that it has */
	int64_t threads;	    /* threads that were seen, shown or not; 0: not known */
	int64_t missing;	    /* scans before this one that were not recorded */
};

struct scan_rows;

/* input: the caller's. */
struct scan_rows *scan_rows_new(struct csv_input *input, const char *name);
/* Reads the first row of the part ahead; rows that can't be read are passed over and counted. 1, 0:
 * there is none, -EINTR: call again, or -errno with e. */
int scan_rows_peek(struct scan_rows *rows, struct recording_part *part, struct error *e);
/* Finds the scan that the next sample is of, whose time is sample_us (INT64_MAX: there is no
 * further sample). Both are in the order in which they were recorded, so that clocks may step. 1:
 * *scan is one that saw nobody, before that; 0: there is none before, and *now is the sample's row,
 * or its time is ABSENT; or as above. */
int scan_rows_find(struct scan_rows *rows, struct recording_part *part, int64_t sample_us,
		   struct scan_row *now, struct scan *scan, struct error *e);
/* Adds what was not recorded, or is lost. */
void scan_rows_describe(const struct scan_rows *rows, struct source_status *status);
void scan_rows_free(struct scan_rows *rows); /* also of NULL */

/* Adds a row as scan_rows_next() reads it. */
void scan_row_add(struct text *text, const struct scan_row *row);

#endif
