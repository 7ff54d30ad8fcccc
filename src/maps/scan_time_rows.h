/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows that switches after the scan time have kept, with thread states at the scan time: the
 * sampler's side of ts_scan_time, see bpf_text/thread_state.h. Only the sampler that owns the
 * probes has scan times; before 5.5, where the maps can't be mapped, none has.
 */
#ifndef TSNAP_MAPS_SCAN_TIME_ROWS_H
#define TSNAP_MAPS_SCAN_TIME_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "kernel/record.h"

/* Zeroed rows have no scan times. */
struct scan_time_rows {
	struct sampling *sampling; /* mapped ts_sampling, and ts_scan_time; NULL: no scan times */
	struct scan_time_ring *rings;
	int cpus; /* possible CPUs */
};

/* Maps both; with -1 for a map there are no scan times. 0 or -errno; the caller calls
 * scan_time_rows_done() either way. */
int scan_time_rows_init(struct scan_time_rows *rows, int sampling_map, int scan_time_map, int cpus);
void scan_time_rows_done(struct scan_time_rows *rows);

/* Has the first switch of each thread from scan_time_ns (monotonic) on keep what the thread did at
 * the scan time. */
void scan_time_begin(struct scan_time_rows *rows, int64_t scan_time_ns);
/* Ends what scan_time_begin() began. False: rows are missing, because there are no scan times, too
 * much time has passed or too much was kept; else found gets the rows by the keys of their records,
 * as pointers that are valid until the next scan time. */
bool scan_time_end(struct scan_time_rows *rows, struct index *found);

/* Makes the record what it was at the scan time, or when the thread left its CPU if it ran then.
 * row: what was kept of the same thread. */
void scan_time_restore(const struct scan_time_row *row, struct thread_state *record);

#endif
