/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a history keeps of a scan and its samples, and its coding as bytes, and back. */
#ifndef TSNAP_SCREEN_HISTORY_CODE_H
#define TSNAP_SCREEN_HISTORY_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"
#include "sample/column.h"
#include "sample/trace_kind.h"

/* The parts of the band's bars, bottom first. */
enum band_part { BAND_ON, BAND_RQ, BAND_DISK, BAND_WORK, BAND_COUNT };

/* What a history keeps of a scan beside its samples. */
struct history_scan {
	int64_t time_us, weight_us, silent_us, clock_step_us; /* same as in struct scan */
	uint32_t threads;		    /* threads seen in all; 0: not known */
	uint32_t samples, accounts, traces; /* counts, in the order of the chunk's bytes */
	uint32_t offset, end;		    /* start and end of the samples in the chunk's bytes */
	uint32_t band[BAND_COUNT];	    /* number of threads in each of these states */
};

/* True if the column's value may differ from scan to scan while a thread goes on with what it does:
 * it is in no tuple. */
bool history_varies(const struct column *column);
/* True if the column's values are kept. */
bool history_keeps(const struct column *column);

/* --- for history.c only */

/* The texts of a history: equal texts have one address, as long as a chunk of the history uses
 * them. One thread adds; any thread that holds a chunk may read addresses. A zeroed struct has
 * none. */
struct history_texts {
	struct index by_hash; /* hash to the first name of a chain */
	size_t bytes;
};

/* Finds the columns that are kept; may be called by any thread, any number of times. */
void history_columns_find(void);

/* Tuples of values of the same columns, each once. */
struct history_tuples {
	union value *values;
	size_t width, count, capacity;
	struct index by_hash; /* hash to number plus one; for equal hashes of the last tuple */
};

struct history_chunk {
	size_t holders; /* number of holders: snapshots, and the history */
	struct history_tuples who, what;
	struct index uses; /* addresses of the texts that the chunk uses */
	struct text bytes;
	struct history_scan *scans;
	size_t scan_count, scan_capacity;
	struct history_coder *coder; /* coder of the writer; NULL once the chunk is full */
	bool coarse;		     /* the chunk has no more scans than one that was made coarse */
};

/* Last state of a thread in the bytes: both sides expect the next sample to go on with it. */
struct history_last {
	uint64_t memo;	  /* value of a visitor; 0 once the thread's tuple has changed */
	uint32_t what;	  /* number of the thread's tuple in `what`, plus one; 0: no sample yet */
	uint32_t present; /* numbers that may not be absent, a bit each; for a reader */
	struct sample sample; /* last sample, with its numbers */
};

struct history_recent;

struct history_coder {
	struct history_last *last;     /* indexed by number of the thread's tuple */
	struct history_recent *recent; /* see history_know_texts(); NULL: texts are looked up */
	size_t capacity;
	int64_t who; /* number of the previous sample's thread in the same scan; -1: none */
};

void history_coder_free(struct history_coder *coder); /* NULL is allowed */

/* Has history_encode() know texts again by their addresses: those of the samples must be interned
 * (base/names.h), by the calling thread. */
void history_know_texts(struct history_coder *coder);
/* Adds the sample to the chunk's bytes. texts: those of the chunk's history. */
void history_encode(struct history_chunk *chunk, struct history_texts *texts,
		    const struct sample *sample, const struct history_scan *scan);
void history_encode_account(struct history_chunk *chunk, struct history_texts *texts,
			    const struct sample *account);

/* Decodes the sample at *at and moves *at to its end. The sample is the coder's and is valid until
 * the next call. */
const struct sample *history_decode(const struct history_chunk *chunk, struct history_coder *coder,
				    size_t *at, const struct history_scan *scan);
void history_decode_account(const struct history_chunk *chunk, size_t *at,
			    const struct history_scan *scan, struct sample *account);

/* Adds a histogram of durations that --trace measured, for the thread `who`. */
void history_encode_trace(struct history_chunk *chunk, struct history_texts *texts,
			  const struct trace_kind *kind, const struct sample *who,
			  const struct histogram *histogram);
const struct trace_kind *history_decode_trace(const struct history_chunk *chunk, size_t *at,
					      const struct history_scan *scan, struct sample *who,
					      struct histogram *histogram);

/* Frees texts that no other chunk uses. */
void history_texts_drop(struct history_texts *texts, struct index *uses);
size_t history_chunk_bytes(const struct history_chunk *chunk);

#endif
