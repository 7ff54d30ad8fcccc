/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where the fields of plain CSV end, 64 bytes at a time. A row is plain if each quote begins
 * or ends a field, and no line end is in quotes, and there is no NUL: nearly all rows of tsnap are.
 * csv_reader reads all others byte by byte.
 */
#ifndef TSNAP_RECORDING_CSV_INDEX_H
#define TSNAP_RECORDING_CSV_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CSV_RECORD_MAX (1u << 20) /* bytes; a command line with every byte escaped fits */
#define CSV_INDEX_BYTES 16384	  /* limit of bytes that one call looks at; offsets fit 16 bits */
#define CSV_INDEX_AHEAD 64 /* bytes after the text that may be read; their values do not matter */

/* Input of bytes that is not a descriptor. */
struct csv_input {
	/* Returns how many bytes were read, 0 at the end, -EINTR (call again), or another -errno
	 * with e. */
	ssize_t (*read)(struct csv_input *input, char *bytes, size_t size, struct error *e);
};

/* Looks at text, which begins with a record, up to the last complete plain one. Fills ends, which
 * has capacity for CSV_INDEX_BYTES, with the offsets of the commas and line ends that end fields.
 * Returns the bytes of these records; 0: the first one is not plain, or longer than the bytes
 * looked at. */
size_t csv_index_make(uint16_t *ends, size_t *count, const char *text, size_t length);

/* The line end of the record that begins at `at`: the first one outside quotes; NULL: none. */
char *csv_record_end(char *at, char *end);

#endif
