/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads CSV (RFC 4180) from a descriptor, one record at a time, in bounded memory. Independent of
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
	char *text; /* without quotes, NUL-terminated; valid until the next record is read */
	size_t length;
	bool quoted; /* distinguishes "" from an absent value */
};

struct csv_ahead;
struct csv_block;

/* A reader that is zeroed except for fd (or input, or ahead) and name is valid, at the first
 * record. */
struct csv_reader {
	int fd;			 /* owned by the caller */
	struct csv_input *input; /* owned by the caller; NULL: fd is read */
	struct csv_ahead *ahead; /* owned by the caller, and read instead of both; NULL: none */
	const char *name;	 /* name of the file, for errors; owned by the caller */
	uint64_t line;		 /* line at which the last record began, from 1 */
	uint64_t lines;		 /* line ends passed */
	char *bytes; /* bytes of the block if ahead is read; CSV_INDEX_AHEAD more than capacity */
	size_t capacity, start, end;
	bool ended, cut;
	/* Ends of the fields of plain records that were not read yet; offsets from indexed on */
	const uint16_t *ends;
	size_t ends_count, indexed;
	uint16_t *own_ends;
	struct csv_block *block; /* last block taken from ahead */
	size_t run;		 /* next run of the block */
};

/* 1: *fields and *count are filled; 0: the end; -EINTR: a signal came first, call again; another
 * -errno with e: unreadable or not CSV. A last record without a line end was cut off by whatever
 * stopped its writer: it is not returned, and reader->cut is set. */
int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e);
void csv_done(struct csv_reader *reader);

#endif
