/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads what threads hold between two probes of the user's own (bpf_text/probe_context.bpf.c), as
 * it was at a scan time.
 */
#ifndef TSNAP_MAPS_HELD_READER_H
#define TSNAP_MAPS_HELD_READER_H

#include <stdint.h>

#include "kernel/record.h"

/* What a thread holds: values of contexts by their index. */
struct held_values {
	uint32_t holds; /* bits of the contexts that have one */
	uint64_t values[PROBE_HELD_MAX];
};

/* Zeroed: nobody holds anything. */
struct held_reader {
	const struct probe_held *mapped; /* by thread_state.key */
	uint32_t count;
};

/* Opens a reader. map: KERNEL_MAP_HELD; -1: nobody holds anything. 0 or -errno; the caller calls
 * held_reader_done() either way. */
int held_reader_init(struct held_reader *reader, int map, uint32_t count);
void held_reader_done(struct held_reader *reader);

/* Fills what the record's thread held at the scan time, which must be that of the scan whose rows
 * are being kept (maps/scan_time_rows.h), or another time since the thread's last change. Nothing
 * if it is written at the moment. */
void held_read(const struct held_reader *reader, const struct thread_state *record,
	       int64_t scan_time_ns, struct held_values *values);

#endif
