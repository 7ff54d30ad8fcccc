/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 128 bits that stand for the bytes of some fields of a CSV record: two records that are not equal
 * there have the same ones in one of 10^19 comparisons. They begin with random bits of the process,
 * so that nobody can choose names or command lines with which a row of theirs passes for another
 * one. Pure.
 */
#ifndef TSNAP_RECORDING_ROW_HASH_H
#define TSNAP_RECORDING_ROW_HASH_H

#include <stddef.h>
#include <stdint.h>

#define ROW_HASH_FIELDS_MAX 256

struct row_hash {
	uint64_t one, other; /* zeros: of no row */
};

/* Which fields count. */
struct row_hasher {
	struct row_hash begin;
	size_t field_count; /* fields up to the last one that counts; 0: none does */
	size_t stretch_count;
	/* fields that follow each other, with what separates them */
	struct row_stretch {
		uint16_t first, last;
	} stretches[ROW_HASH_FIELDS_MAX];
};

/* fields: numbers from 0 in ascending order, at most ROW_HASH_FIELDS_MAX. */
void row_hasher_init(struct row_hasher *hasher, const size_t *fields, size_t count);
/* Fields end at these offsets from text, the first one begins at start. There must be field_count
 * of them, and 8 bytes behind the last one that may be read. */
struct row_hash row_hash_of(const struct row_hasher *hasher, const char *text, const char *start,
			    const uint16_t *ends);

#endif
