/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads CSV in a thread of its own, ahead of a csv_reader, in blocks of whole records, and finds
 * the fields of plain ones (csv_index.h). For files only: a reader that waits for a pipe must wake
 * for signals.
 */
#ifndef TSNAP_RECORDING_CSV_AHEAD_H
#define TSNAP_RECORDING_CSV_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct csv_input;
struct csv_ahead;

/* Plain records that follow each other. */
struct csv_run {
	size_t at;		    /* offset in the block's bytes */
	size_t ends_at, ends_count; /* first and number of its ends in the block's ends */
};

/* Records; those between the runs are not plain. */
struct csv_block {
	char *bytes; /* the reader may change them; CSV_INDEX_AHEAD more bytes are allocated */
	size_t length, capacity;
	uint16_t *ends; /* ends of fields: offsets from the start of their run */
	size_t ends_capacity;
	struct csv_run *runs;
	size_t run_count, run_capacity;
	int err; /* after the bytes: 0: more, -ENODATA: the end, or another -errno with e */
	struct error e;
};

/* Starts a thread that reads the input, which the caller owns, until csv_ahead_free(). NULL: no
 * thread could be created. */
struct csv_ahead *csv_ahead_new(struct csv_input *input);
/* The next block, valid until the next call. Its last record may have no end if err is set or the
 * record is longer than CSV_RECORD_MAX. */
struct csv_block *csv_ahead_next(struct csv_ahead *ahead);
void csv_ahead_free(struct csv_ahead *ahead); /* NULL is fine */

#endif
