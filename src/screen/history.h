/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of the last minutes, in bounded memory, for the full screen to look back at.
 *
 * One thread adds scans; any thread takes a snapshot and visits it, and adding goes on meanwhile:
 * no thread waits for longer than it takes to copy the newest chunk.
 *
 * A history is a list of chunks of some seconds. A chunk has the threads and their activities as
 * tuples, each once, and for each scan a few bytes a sample: the difference to the expected sample.
 * That is one byte for a thread that goes on with what it did. A chunk that is too old keeps one
 * scan a second, with the exact times of all; later, or when memory is full, the
 * oldest chunk is dropped.
 *
 * Not kept: columns of stat, status and io in /proc, the arguments of system calls, and what only
 * single events have.
 */
#ifndef TSNAP_SCREEN_HISTORY_H
#define TSNAP_SCREEN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/history_code.h"

#define HISTORY_BYTES_DEFAULT ((size_t)64 << 20)
#define HISTORY_AGE_DEFAULT_US (10ll * 60 * 1000000)
#define HISTORY_ACCOUNT_US 1000000 /* interval between two accounts of a live source */

struct history;
struct history_chunk;

/* A snapshot. A zeroed struct is an empty one. */
struct history_view {
	struct history *history;
	struct history_chunk **chunks; /* oldest first */
	size_t chunk_count;
	struct history_chunk *open; /* copy of the newest chunk; NULL: none */
	int64_t first_us, last_us;  /* times of the first scan and of the last one */
	uint64_t scan_count;
	uint64_t thinned_scans; /* scans left out of coarse chunks, which have one a second */
	uint64_t dropped_scans; /* scans that were too old, or did not fit */
	bool dropped_memory;	/* some scans were dropped for lack of memory */
};

/* Functions that a visit calls; those that are NULL are skipped. */
struct history_visitor {
	void (*scan)(void *to, const struct history_scan *scan); /* before the scan's samples */
	void (*sample)(void *to, const struct sample *sample);
	void (*account)(void *to, const struct sample *account);
	void *to;
	/* Takes a histogram of one thread for the time before the scan. */
	void (*trace)(void *to, const struct trace_kind *kind, const struct sample *who,
		      const struct histogram *histogram);
	/* Called like sample(). *memo is the visitor's own: 0, or what it stored there at the
	 * thread's previous sample, if all columns that are in tuples have the same values as
	 * then. */
	void (*sample_memo)(void *to, const struct sample *sample, uint64_t *memo);
};

/* Makes a history. bytes: limit of its memory. age_us: scans older than that are thinned to one a
 * second; 0: none is too old. */
struct history *history_new(size_t bytes, int64_t age_us);
void history_free(struct history *history);

/* Adds samples of the scan that is being gathered; history_end_scan() adds its last batch. */
void history_add_batch(struct history *history, const struct scan *batch);
void history_end_scan(struct history *history, const struct scan *scan);
/* Adds an account (sample/source.h) to the scan that was added last. */
void history_add_account(struct history *history, const struct sample *account);
/* Adds what --trace measured to the scan that was added last, after its accounts. kind: static
 * storage. */
void history_add_trace(struct history *history, const struct trace_kind *kind,
		       const struct sample *who, const struct histogram *histogram);
size_t history_bytes(struct history *history);

/* Replaces the snapshot by a newer one; its chunks are held until the view is done with. */
void history_look(struct history *history, struct history_view *view);
void history_view_done(struct history_view *view);

#define SEEN_GAP_US \
	60000000 /* a longer time that was not seen is not caught up with: none is seen */

/* Times that a visitor has seen when a long history is visited in parts: since_us <= time <
 * until_us. */
struct history_seen {
	int64_t since_us, until_us;
};
/* The value before a first visit: it begins with the newest part of the history. */
struct history_seen history_seen_none(const struct history_view *view);
/* Visits all that is newer than what was seen, then older parts back to from_us, for 20 ms of CPU
 * time: a key must not wait for a long history. Later calls visit the rest. */
void history_visit_part(const struct history_view *view, struct history_seen *seen, int64_t from_us,
			const struct history_visitor *visitor);
/* Calls the visitor for all scans with from_us <= time < until_us. */
void history_visit(const struct history_view *view, int64_t from_us, int64_t until_us,
		   const struct history_visitor *visitor);

#endif
