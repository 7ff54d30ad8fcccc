/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads CSV (RFC 4180) from a descriptor, one record at a time, in bounded memory. Knows nothing of
 * samples.
 */
#ifndef TSNAP_RECORDING_CSV_READER_H
#define TSNAP_RECORDING_CSV_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recording/csv_index.h"

#define CSV_FIELDS_MAX 256

struct csv_field {
	char *text; /* without quotes, NUL-terminated; the reader's until the next record */
	size_t length;
	bool quoted; /* tells "" from nothing at all */
};

struct csv_ahead;
struct csv_block;

/* Zeroed but for fd (or input, or ahead) and name is a valid reader at the first record. */
struct csv_reader {
	int fd;			 /* the caller's */
	struct csv_input *input; /* the caller's; NULL: fd is read */
	struct csv_ahead *ahead; /* the caller\'s, and read instead of both; NULL: none */
	const char *name;	 /* the file's, for errors; the caller's */
	uint64_t line;		 /* line that the last record began at, from 1 */
	uint64_t lines;		 /* line ends passed */
	char *bytes; /* the block's, where ahead is read; CSV_INDEX_AHEAD more than capacity */
	size_t capacity, start, end;
	bool ended, cut;
	/* Ends of fields of plain records, of which none was read yet; offsets from indexed on */
	const uint16_t *ends;
	size_t ends_count, indexed;
	uint16_t *own_ends;
	struct csv_block *block; /* last block taken from ahead */
	size_t run;		 /* next run of the block */
};

/* 1: *fields and *count are filled; 0: the end; -EINTR: a signal came first, call again; another
 * -errno with e: unreadable or not CSV. A last record without a line end was cut off by whatever
 * stopped its writer: it is not given out, and reader->cut is set. */
int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e);
void csv_done(struct csv_reader *reader);

#endif
