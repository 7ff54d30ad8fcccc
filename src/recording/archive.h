/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second tier of a recording: a few of its scans, kept for longer. Exact times of a thread in
 * the scans between are added to its next row there, so that they stay whole.
 */
#ifndef TSNAP_RECORDING_ARCHIVE_H
#define TSNAP_RECORDING_ARCHIVE_H

#include <stdbool.h>

#include "base/index.h"
#include "recording/scan_rows.h"
#include "sample/sample.h"

struct archive_sums;

/* Zeroed, but for every_us, is empty. */
struct archive {
	int64_t every_us;     /* one scan in so much time; 0: there is no archive */
	bool begun, now;      /* the present scan has a row, and is archived */
	int64_t due_us;	      /* the first scan from then on is archived */
	int64_t weight_us;    /* weight of the scans since the last one that was archived */
	int64_t rows;	      /* rows of samples in the present scan */
	struct index threads; /* tid: number of its sums, from 1 */
	struct archive_sums *sums;
	size_t sum_count, sum_capacity;
	int64_t swept_us;
	struct sample *samples; /* samples of the present batch, with the archive's sums */
	size_t capacity;
};

/* Takes a batch of the present scan. The samples to be archived, weights and exact times of those
 * since the last one; the archive's, until the next call. */
struct scan archive_take(struct archive *archive, const struct scan *batch);
/* The present scan has all of its parts. True: it is archived, and *row is filled but for what is
 * missing. */
bool archive_scan_end(struct archive *archive, const struct scan *scan, struct scan_row *row);
void archive_done(struct archive *archive);

#endif
