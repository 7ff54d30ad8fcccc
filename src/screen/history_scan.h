/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a history keeps of a scan, beside its samples. */
#ifndef TSNAP_SCREEN_HISTORY_SCAN_H
#define TSNAP_SCREEN_HISTORY_SCAN_H

#include <stdint.h>

/* The columns of the band, bottom first. */
enum band_part { BAND_ON, BAND_RQ, BAND_DISK, BAND_WORK, BAND_COUNT };

/* What is kept of a scan itself. */
struct history_scan {
	int64_t time_us, weight_us, silent_us; /* as in struct scan */
	uint32_t threads;		       /* seen in all; 0: not known */
	uint32_t samples, accounts, traces;    /* in the chunk's bytes, in this order */
	uint32_t offset, end;		       /* where in these bytes samples begin and end */
	uint32_t band[BAND_COUNT];	       /* threads in these states */
};

#endif
