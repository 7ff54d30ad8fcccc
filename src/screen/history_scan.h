/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about a scan that a history keeps beside its samples. */
#ifndef TSNAP_SCREEN_HISTORY_SCAN_H
#define TSNAP_SCREEN_HISTORY_SCAN_H

#include <stdint.h>

/* The parts of the band's bars, bottom first. */
enum band_part { BAND_ON, BAND_RQ, BAND_DISK, BAND_WORK, BAND_COUNT };

/* A scan, without its samples. */
struct history_scan {
	int64_t time_us, weight_us, silent_us, clock_step_us; /* same as in struct scan */
	uint32_t threads;		    /* threads seen in all; 0: not known */
	uint32_t samples, accounts, traces; /* counts, in the order of the chunk's bytes */
	uint32_t offset, end;		    /* start and end of the samples in the chunk's bytes */
	uint32_t band[BAND_COUNT];	    /* number of threads in each of these states */
};

#endif
