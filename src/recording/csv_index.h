/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where the fields of plain CSV end, 64 bytes at a time. Plain are rows in which each quote
 * begins or ends a field and which have no line end in quotes and no NUL, as nearly all rows of
 * tsnap. csv_reader reads all others byte by byte.
 */
#ifndef TSNAP_RECORDING_CSV_INDEX_H
#define TSNAP_RECORDING_CSV_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define CSV_INDEX_BYTES 16384 /* looked at in one call, at most; offsets fit 16 bits */
#define CSV_INDEX_AHEAD 64    /* bytes behind the text that may be read, whatever they are */

struct csv_index {
	uint16_t ends[CSV_INDEX_BYTES]; /* offsets of the commas and line ends that end fields */
	size_t count, next;		/* of ends; the first one that the reader has not used */
};

/* Looks at text, where a record begins, up to the last whole plain one. Returns the bytes of these
 * records; 0: the first one is not plain, or longer than what is looked at. */
size_t csv_index_make(struct csv_index *index, const char *text, size_t length);

#endif
