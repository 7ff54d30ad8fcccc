/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads rows of samples from CSV: columns are matched by name, in any choice and order. */
#ifndef TSNAP_RECORDING_SAMPLE_ROW_H
#define TSNAP_RECORDING_SAMPLE_ROW_H

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "sample/column.h"
#include "sample/proc_values.h"

/* A row that is zeroed except for reader, needs and changed is valid and has no header line. */
struct sample_row {
	struct csv_reader *reader; /* owned by the caller */
	uint64_t needs;		   /* NEED_*; text that they do not include is not kept */
	bool changed;		   /* callers change more of the sample than its weight */
	struct csv_field fields[CSV_FIELDS_MAX];
	size_t count;				      /* fields that csv_read() filled */
	size_t header_count;			      /* fields of the header line, */
	const struct column *columns[CSV_FIELDS_MAX]; /* and their columns; NULL: none */
	size_t time_field;
	struct row_cell {
		const struct column *column;
		size_t field;
	} cells[CSV_FIELDS_MAX]; /* fields that are read */
	size_t cell_count;
	struct sample_wide next; /* last row that was read */

	/* private to sample_row.c */
	bool fresh; /* next has stale values in columns other than those of this header line */
	struct text scratch;
	struct csv_texts texts;
	char time_text[CLOCK_ISO_SIZE]; /* last time read; the next row most likely has the same */
	int64_t time_value;
};

/* Takes the record in fields as a header line: finds each field's column. 0, or -errno with e. */
int sample_row_header(struct sample_row *row, struct error *e);
/* True if the record in fields is another header line. */
bool sample_row_is_header(const struct sample_row *row);
/* Takes the record in fields as a row: fills next. 0, or -errno with e. */
int sample_row_read(struct sample_row *row, struct error *e);
/* Copies the sample. again: *to has a copy from the same header line already. */
void sample_row_copy(const struct sample_row *row, struct sample *to, bool again);
int sample_row_fail(const struct sample_row *row, struct error *e, const char *column,
		    const char *what);
void sample_row_done(struct sample_row *row);

#endif
