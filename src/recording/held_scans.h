/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans that are recorded only around certain moments: their rows wait until it is known whether
 * one comes soon after them. What else came with a scan, as events and the dictionary of stacks, is
 * always recorded.
 */
#ifndef TSNAP_RECORDING_HELD_SCANS_H
#define TSNAP_RECORDING_HELD_SCANS_H

#include "recording/recorder.h"

struct held_scan {
	int64_t time_us;
	struct text rows[RECORD_KIND_COUNT];
};

/* Zeroed, but for around_us and recorder, is empty. */
struct held_scans {
	struct recorder *recorder;
	int64_t around_us;	/* time that is kept before and after a moment */
	int64_t until_us;	/* scans until then are kept, as of the last moment */
	struct held_scan *ring; /* the oldest at first, the present one behind the others */
	size_t first, count, capacity;
	size_t bytes;	  /* rows that wait; above HELD_BYTES_MAX the oldest go */
	uint64_t dropped; /* scans that went because of HELD_BYTES_MAX */
};

#define HELD_BYTES_MAX (64u << 20)

/* Returns the present scan's rows of that kind, to be added to. */
struct text *held_scans_rows(struct held_scans *held, enum record_kind kind);
/* Ends the present scan, of that time; moment: this is one. Hands to the recorder what is decided
 * on, in the order of time. */
void held_scans_put(struct held_scans *held, int64_t time_us, bool moment);
/* At the end: nothing comes any more. Hands all but undecided scans to the recorder. */
void held_scans_end(struct held_scans *held);
void held_scans_done(struct held_scans *held);

#endif
