/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where the fields of plain CSV end, 64 bytes at a time. Plain are rows in which each quote
 * begins or ends a field and which have no line end in quotes and no NUL, as nearly all rows of
 * tsnap. csv_reader reads all others byte by byte.
 */
#ifndef TSNAP_RECORDING_CSV_INDEX_H
#define TSNAP_RECORDING_CSV_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CSV_RECORD_MAX (1u << 20) /* bytes; a command line with every byte escaped fits */
#define CSV_INDEX_BYTES 16384	  /* looked at in one call, at most; offsets fit 16 bits */
#define CSV_INDEX_AHEAD 64	  /* bytes behind the text that may be read, whatever they are */

/* Bytes that come from elsewhere than a descriptor. */
struct csv_input {
	/* Returns how many bytes were read, 0 at the end, -EINTR (call again), or another -errno
	 * with e. */
	ssize_t (*read)(struct csv_input *input, char *bytes, size_t size, struct error *e);
};

/* Looks at text, where a record begins, up to the last whole plain one; fills ends, which has room
 * for CSV_INDEX_BYTES, with the offsets of the commas and line ends that end fields. Returns the
 * bytes of these records; 0: the first one is not plain, or longer than what is looked at. */
size_t csv_index_make(uint16_t *ends, size_t *count, const char *text, size_t length);

/* The line end behind the record that begins at `at`: the first one outside quotes; NULL: none. */
char *csv_record_end(char *at, char *end);

#endif
