/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of scans in a recording: one for every scan, also of those that saw nobody, so that
 * averages over a recording are those of the live host. Columns are matched by name.
 */
#ifndef TSNAP_RECORDING_SCAN_ROWS_H
#define TSNAP_RECORDING_SCAN_ROWS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"

#define SCAN_ROWS_HEADING "timestamp,weight_us,samples,threads,missing"

struct scan_row {
	int64_t time_us, weight_us; /* as of struct scan */
	int64_t samples;	    /* rows of samples that it has */
	int64_t threads;	    /* that were seen, shown or not; 0: not known */
	int64_t missing;	    /* scans before this one that were not recorded */
};

struct scan_rows;

/* input: the caller's. */
struct scan_rows *scan_rows_new(struct csv_input *input, const char *name);
/* 1: *row is filled, 0: the end, -EINTR: call again, or -errno with e. Rows that can't be read are
 * passed over and counted. */
int scan_rows_next(struct scan_rows *rows, struct scan_row *row, struct error *e);
uint64_t scan_rows_bad(const struct scan_rows *rows);
void scan_rows_free(struct scan_rows *rows); /* also of NULL */

/* Adds a row as scan_rows_next() reads it. */
void scan_row_add(struct text *text, const struct scan_row *row);

#endif
