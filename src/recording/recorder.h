/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records rows into a directory, for always. The caller, who samples, fills the rows of a scan and
 * puts it into a bounded queue, which never waits; a thread of the recorder packs and writes frames
 * (frame_file.h), begins parts (part_name.h) and removes old ones (retention.h).
 *
 * When the disk takes no more, scans wait in memory; when the queue is full they are dropped and
 * counted. The thread tries again with every flush.
 */
#ifndef TSNAP_RECORDING_RECORDER_H
#define TSNAP_RECORDING_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/record_kind.h"
#include "recording/retention.h"

#define FLUSH_DEFAULT_US 5000000ll

struct recorder_options {
	const char *path;   /* directory; the caller's as long as the recorder lives */
	const char *host;   /* host name, for the names of files */
	int64_t flush_us;   /* a frame ends after so long */
	size_t queue_bytes; /* bytes that may wait for the disk; 0: the default */
	struct retention retention;
	/* lines, without their ends; NULL: nothing is recorded of that kind */
	const char *headers[RECORD_KIND_COUNT];
};

struct recorder;

/* Makes the directory if there is none, and locks it. 0, or -errno with e. */
int recorder_open(const struct recorder_options *options, struct recorder **recorder,
		  struct error *e);
/* Returns the rows of that kind, to be added to until the next recorder_put(). */
struct text *recorder_rows(struct recorder *recorder, enum record_kind kind);
/* Puts what was added into the queue, as of a scan at that time. */
void recorder_put(struct recorder *recorder, int64_t time_us);
/* Scans with rows of that kind that were dropped since the last one that was put into the queue. */
uint64_t recorder_missing(const struct recorder *recorder, enum record_kind kind);
/* True once for every part that was begun, and whenever rows were dropped: what must be in each
 * part, as the dictionary of stacks, is to be told anew. */
bool recorder_begins(struct recorder *recorder);
/* Adds lines that the user must know, as "disk full". */
void recorder_words(struct recorder *recorder, struct text *to);
/* Writes what is left, and ends. 0, or -errno with e: scans were lost. */
int recorder_close(struct recorder *recorder, struct error *e);

#endif
