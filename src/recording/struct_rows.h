/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of CSV whose columns are the members of a struct: those of scans and of findings in a
 * recording. The columns of a row are found by their names in the header line before it; unknown
 * ones are skipped, so that later versions may add some.
 */
#ifndef TSNAP_RECORDING_STRUCT_ROWS_H
#define TSNAP_RECORDING_STRUCT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"

enum row_value {
	ROW_TIME,   /* int64_t, UTC in us */
	ROW_COUNT,  /* int64_t, not negative */
	ROW_NUMBER, /* int64_t */
	ROW_TEXT,   /* const char *, valid until the next row is read */
};

struct row_column {
	const char *name;
	enum row_value kind;
	size_t offset; /* of the member */
};

/* What the rows of a kind are. */
struct row_kind {
	const struct row_column *columns; /* the first is a time, "timestamp" */
	size_t count;
	const void *blank; /* a row in which no value was read */
	size_t size;	   /* of such a struct */
	/* Says whether the values that were read make a row; NULL: any do. */
	bool (*complete)(const void *row);
};

/* A reader that is zeroed except for kind, reader.fd -1, reader.input and reader.name is valid. */
struct struct_rows {
	const struct row_kind *kind;
	struct csv_reader reader;
	struct csv_field fields[CSV_FIELDS_MAX];
	int column_of[CSV_FIELDS_MAX]; /* index into the columns, -1: not known */
	size_t count;		       /* fields of a row; 0: no header line yet */
	uint64_t bad;		       /* rows that can't be read, and were skipped */
};

/* Reads the next row that can be read. 1: *row, a struct of this kind, is filled; 0: the end;
 * -EINTR: call again, or -errno with e. */
int struct_rows_read(struct struct_rows *rows, void *row, struct error *e);
void struct_rows_done(struct struct_rows *rows);

/* Adds a row in the form that struct_rows_read() reads, with all columns in their order. */
void struct_row_add(struct text *text, const struct row_kind *kind, const void *row);

#endif
