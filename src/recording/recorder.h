/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records rows into a directory without end. The caller, which samples, fills the rows of a scan
 * and puts it into a bounded queue, and never waits. A thread of the recorder packs and writes
 * frames (frame.h), begins parts (part_name.h) and removes old ones (retention.h).
 *
 * When the disk is full or fails, scans wait in memory; when the queue is full they are dropped and
 * counted. The thread tries again with every flush.
 */
#ifndef TSNAP_RECORDING_RECORDER_H
#define TSNAP_RECORDING_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/frame.h"
#include "recording/retention.h"

#define FLUSH_DEFAULT_US 5000000ll

struct recorder_options {
	const char *path;   /* directory; owned by the caller, must outlive the recorder */
	const char *host;   /* host name, for the names of files */
	int64_t flush_us;   /* time after which a frame ends */
	size_t queue_bytes; /* bytes that may wait for the disk; 0: the default */
	struct retention retention;
	_Atomic int64_t *written_ns; /* gets the time when the last scan on the disk was put */
	/* header lines, without line ends; NULL: that kind is not recorded */
	const char *headers[RECORD_KIND_COUNT];
};

struct recorder;

/* Makes the directory if there is none, and locks it. 0, or -errno with e. */
int recorder_open(const struct recorder_options *options, struct recorder **recorder,
		  struct error *e);
/* Returns the rows of that kind; the caller adds to them until the next recorder_put(). */
struct text *recorder_rows(struct recorder *recorder, enum record_kind kind);
/* Puts the added rows into the queue, as a scan of that time. */
void recorder_put(struct recorder *recorder, int64_t time_us);
/* Counts scans of that kind that were not put at all, as if they had been dropped. */
void recorder_miss(struct recorder *recorder, enum record_kind kind, int64_t count);
/* Number of scans with rows of that kind that were dropped since the last one that was put into the
 * queue. */
uint64_t recorder_missing(const struct recorder *recorder, enum record_kind kind);
/* True once for every part that was begun, and whenever rows were dropped: rows that must be in
 * each part, such as the dictionary of stacks, are to be added again. */
bool recorder_begins(struct recorder *recorder);
/* Adds messages for the user, such as "disk full". */
void recorder_words(struct recorder *recorder, struct text *to);
/* Writes the remaining rows, and ends. 0, or -errno with e: scans were lost. */
int recorder_close(struct recorder *recorder, struct error *e);

#endif
