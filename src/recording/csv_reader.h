/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads CSV (RFC 4180), one record at a time, in bounded memory, and the values that
 * report/value.c wrote into it. Independent of samples.
 */
#ifndef TSNAP_RECORDING_CSV_READER_H
#define TSNAP_RECORDING_CSV_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/row_hash.h"

#define CSV_FIELDS_MAX 256

/* Input of bytes that is not a descriptor. */
struct csv_input {
	/* Returns how many bytes were read, 0 at the end, -EINTR (call again), or another -errno
	 * with e. */
	ssize_t (*read)(struct csv_input *input, char *bytes, size_t size, struct error *e);
};

struct csv_field {
	char *text; /* without quotes, NUL-terminated; valid until the next record is read */
	size_t length;
	bool quoted; /* distinguishes "" from an absent value */
};

struct csv_ahead;
struct csv_block;

/* A reader that is zeroed except for fd (or input) and name is valid, at the first
 * record. */
struct csv_reader {
	int fd;			 /* owned by the caller */
	struct csv_input *input; /* owned by the caller; NULL: fd is read */
	struct csv_ahead *ahead; /* reads the input; NULL: csv_read() does */
	const char *name;	 /* name of the file, for errors; owned by the caller */
	uint64_t line;		 /* line at which the last record began, from 1 */
	uint64_t lines;		 /* line ends passed */
	char *bytes;		 /* bytes of the block, of which those from start to end are left */
	size_t start, end;
	bool ended, cut;
	/* Plain records that were not read yet; ends of their fields, as offsets from indexed on */
	const struct csv_record *records, *records_end;
	const uint16_t *ends;
	size_t indexed;
	uint64_t hasher_number;	 /* of what csv_hash() was called with last; 0: of nothing */
	struct csv_block *block; /* last block, which is the reader's own, or of ahead */
	struct text rest;	 /* bytes that the reader's own next block begins with */
	size_t run;		 /* next run of the block */
};

/* 1: *fields and *count are filled; 0: the end; -EINTR: a signal came first, call again; another
 * -errno with e: unreadable or not CSV. A last record without a line end was cut off by whatever
 * stopped its writer: it is not returned, and reader->cut is set. */
int csv_read(struct csv_reader *reader, struct csv_field fields[CSV_FIELDS_MAX], size_t *count,
	     struct error *e);
/* Has a thread of its own read the input ahead of csv_read(), if one can be created. Call before
 * the first read, and for files only: a reader that waits for a pipe must wake for signals. */
void csv_read_ahead(struct csv_reader *reader);
/* Has the thread that reads ahead also make hashes of records: of those that it has not read yet.
 * Does nothing if there is no such thread. */
void csv_hash(struct csv_reader *reader, const struct row_hasher *hasher);
/* A record that is in one piece, and in which quotes are only around fields. */
struct csv_plain {
	char *text, *start;
	const uint16_t *ends;	     /* ends of its fields: offsets from text */
	size_t count;		     /* number of fields */
	const struct row_hash *hash; /* as csv_hash() says; NULL: it was not made */
};

/* True if the next record is plain and at hand: *record is filled, and csv_read() reads it next. */
bool csv_peek(struct csv_reader *reader, struct csv_plain *record);
/* The hash of the record that is that many records behind the one csv_peek() found; NULL: it is
 * not known. */
const struct row_hash *csv_hash_ahead(const struct csv_reader *reader, size_t behind);
/* One of its fields, of which the byte behind it is overwritten. */
struct csv_field csv_plain_field(const struct csv_plain *record, size_t at);
/* The same where it is a number of at most 18 digits: 0; else -EINVAL, and nothing was read. */
int csv_plain_number(const struct csv_plain *record, size_t at, int64_t *number);
/* Has csv_read() read the record after that one. */
void csv_skip(struct csv_reader *reader, const struct csv_plain *record);
void csv_done(struct csv_reader *reader);
/* Returns -EINVAL with e, which names the last record's line. column: "" for none. */
int csv_fail(const struct csv_reader *reader, struct error *e, const char *column,
	     const char *what);

/* limit of the difference of two times in four-digit years */
#define CSV_WEIGHT_MAX_US 320000000000000000ll

/* Reads decimal digits, perhaps with a minus before them. 0 or -EINVAL. */
int csv_number_read(const char *text, int64_t *number);

/* Adds a printable text in quotes; nothing for NULL. */
void csv_text_add(struct text *rows, const char *text);
/* Reads a number like 0x1f, at most 64 bits. 0 or -EINVAL. */
int csv_hex_read(const char *text, int64_t *number);

/* Texts that were read lately, so that most are found without the table of names. A zeroed struct
 * has none. No names may be dropped meanwhile. */
#define CSV_RECENT_BITS 12
struct csv_texts {
	struct csv_recent {
		const char *name;
		size_t length;
	} recent[1 << CSV_RECENT_BITS];
	struct text scratch;
};

/* Returns the field's text as it was before it was made printable; it is transient: some columns
 * are also derived from others (sample_derive()), and equal texts must have one address. */
const char *csv_text_read(struct csv_texts *texts, const struct csv_field *field);

#endif
