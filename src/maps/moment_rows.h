/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows that switches after a scan's moment kept of the moment: the sampler's side of ts_moment, see
 * bpf_text/thread_state.h. Only the sampler that owns the probes has moments; before 5.5, where the
 * maps can't be mapped, none has.
 */
#ifndef TSNAP_MAPS_MOMENT_ROWS_H
#define TSNAP_MAPS_MOMENT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "kernel/record.h"

/* Zeroed has no moments. */
struct moment_rows {
	struct sampling *sampling; /* the two maps; NULL: there are none */
	struct moment_ring *rings;
	int cpus; /* possible ones */
};

/* -1 for a map: there are no moments. 0 or -errno; the rows are the caller's to
 * moment_rows_done() either way. */
int moment_rows_init(struct moment_rows *rows, int sampling_map, int moment_map, int cpus);
void moment_rows_done(struct moment_rows *rows);

/* From then on (monotonic) the first switch of each thread keeps what it did at the moment. */
void moment_begin(struct moment_rows *rows, int64_t moment_ns);
/* Ends that. False: not all is there, as there are no moments, too much time has passed or too much
 * was kept; else found gets the rows by the keys of their records, as pointers that are good until
 * the next moment. */
bool moment_end(struct moment_rows *rows, struct index *found);

/* Makes the record what it was at the moment, or when the thread left its CPU if it ran then. row:
 * what was kept of the same thread. */
void moment_restore(const struct moment_row *row, struct thread_state *record);

#endif
