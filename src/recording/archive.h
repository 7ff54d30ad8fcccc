/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second tier of a recording: a few of its scans, kept for longer. Exact times of a thread in
 * the scans between are added to its next row there, so that their sum stays complete.
 */
#ifndef TSNAP_RECORDING_ARCHIVE_H
#define TSNAP_RECORDING_ARCHIVE_H

#include <stdbool.h>

#include "base/index.h"
#include "recording/scan_rows.h"
#include "sample/sample.h"

struct archive_sums;

/* A zeroed archive, except for every_us, is empty. */
struct archive {
	int64_t every_us;      /* period of the scans; 0: there is no archive */
	bool begun, now;       /* the present scan has a row, and is archived */
	int64_t elapsed_us;    /* weight of all scans before the present one: UTC may step */
	int64_t due_us;	       /* elapsed time from which the next scan is archived */
	int64_t weight_us;     /* weight of the scans since the last archived one, */
	int64_t clock_step_us; /* and how far the clock was set in that time */
	int64_t rows;	       /* rows of samples in the present scan */
	struct index threads;  /* tid to number of its sums, from 1 */
	struct archive_sums *sums;
	size_t sum_count, sum_capacity;
	int64_t swept_us;
	struct sample *samples; /* samples of the present batch, with the archive's sums added */
	size_t capacity;
};

/* Takes a batch of the present scan. Returns the samples to be archived, with the weights and exact
 * times of the scans since the last archived one. The archive owns them; they are valid until the
 * next call. */
struct scan archive_take(struct archive *archive, const struct scan *batch);
/* Ends the present scan, of which all batches were taken. True: it is archived, and *row is filled
 * except for `missing`. */
bool archive_scan_end(struct archive *archive, const struct scan *scan, struct scan_row *row);
void archive_done(struct archive *archive);

#endif
