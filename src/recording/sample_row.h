/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A row of samples as CSV, read back: columns are matched by name, in any choice and order. */
#ifndef TSNAP_RECORDING_SAMPLE_ROW_H
#define TSNAP_RECORDING_SAMPLE_ROW_H

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "recording/csv_texts.h"
#include "sample/column.h"
#include "sample/proc_values.h"

/* Zeroed but for reader, needs and changed is a valid row without a header line. */
struct sample_row {
	struct csv_reader *reader; /* the caller's */
	uint64_t needs;		   /* NEED_*; text that they do not ask for is not kept */
	bool changed;		   /* callers change more of the sample than its weight */
	struct csv_field fields[CSV_FIELDS_MAX];
	size_t count;	     /* fields that csv_read() filled */
	size_t header_count; /* the header line's */
	size_t time_field;
	struct row_cell {
		const struct column *column;
		size_t field;
	} cells[CSV_FIELDS_MAX]; /* fields that are read */
	size_t cell_count;
	struct sample_wide next; /* the row that was read last */

	/* for sample_row.c only */
	bool fresh; /* next is not absent but for the columns of this header line */
	struct text scratch;
	struct csv_texts texts;
	char time_text[CLOCK_ISO_SIZE]; /* the time last read, which the next row most likely has
					   too */
	int64_t time_value;
};

/* The record in fields is a header line: finds each field's column. 0, or -errno with e. */
int sample_row_header(struct sample_row *row, struct error *e);
/* Is the record in fields another header line? */
bool sample_row_is_header(const struct sample_row *row);
/* The record in fields is a row: fills next. 0, or -errno with e. */
int sample_row_read(struct sample_row *row, struct error *e);
/* Copies the sample. again: *to has such a copy of the same header line. */
void sample_row_copy(const struct sample_row *row, struct sample *to, bool again);
int sample_row_fail(const struct sample_row *row, struct error *e, const char *column,
		    const char *what);
void sample_row_done(struct sample_row *row);

#endif
