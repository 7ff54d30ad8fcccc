/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds scans that are recorded only around certain moments (--when): their rows wait until it is
 * known whether a moment comes soon after them. Other rows of a scan, such as events and the
 * dictionary of stacks, are always recorded.
 */
#ifndef TSNAP_RECORDING_HELD_SCANS_H
#define TSNAP_RECORDING_HELD_SCANS_H

#include "recording/recorder.h"

struct held_scan {
	int64_t time_us; /* UTC */
	int64_t now_us;	 /* elapsed time of the recording: UTC may step */
	struct text rows[RECORD_KIND_COUNT];
};

/* A zeroed struct, except for around_us and recorder, is empty. */
struct held_scans {
	struct recorder *recorder;
	int64_t around_us;	/* time that is kept before and after a moment */
	int64_t until_us;	/* elapsed time until which scans are kept after a moment */
	struct held_scan *ring; /* the oldest scan first, the present one after the others */
	size_t first, count, capacity;
	size_t bytes;	  /* waiting rows; above HELD_BYTES_MAX the oldest scans are dropped */
	uint64_t dropped; /* scans that were dropped because of HELD_BYTES_MAX */
};

#define HELD_BYTES_MAX (64u << 20)

/* Returns the present scan's rows of that kind; the caller adds to them. */
struct text *held_scans_rows(struct held_scans *held, enum record_kind kind);
/* Ends the present scan, of that time (UTC), when the recording has lasted for now_us; moment: it
 * is such a moment. Hands the scans that are decided on to the recorder, in order of time. */
void held_scans_put(struct held_scans *held, int64_t time_us, int64_t now_us, bool moment);
/* Ends the recording: no more scans come. Drops undecided scans; only their rows of other kinds go
 * to the recorder. */
void held_scans_end(struct held_scans *held);
void held_scans_done(struct held_scans *held);

#endif
