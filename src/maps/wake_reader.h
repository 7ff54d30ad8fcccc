/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes wake-ups that ended waits which a scan has seen out of the rings that the probe writes
 * (bpf_text/wakes.h). A wake-up that was overwritten before it was read is counted as lost.
 */
#ifndef TSNAP_MAPS_WAKE_READER_H
#define TSNAP_MAPS_WAKE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"

struct wake_reader {
	struct wake_ring *rings; /* NULL: wake-ups are not wanted */
	int cpus;
	uint32_t stack_bytes; /* bytes of a kernel stack, up to the saved registers; 0: not known */
	uint64_t *taken;      /* rows read of each CPU's ring */
	uint64_t lost_count;
};

/* Opens a reader. map: the caller's, or -1. 0 or -errno. */
int wake_reader_init(struct wake_reader *reader, int map, int cpus, uint32_t stack_bytes);
/* Has the probe report the wake-ups that end waits begun before before_ns. May be called by any
 * thread. */
void wake_reader_before(struct wake_reader *reader, int64_t before_ns);
/* Hands over the wake-ups since the last call, one CPU after the other. Returns the monotonic time
 * up to which none is missing. */
int64_t wake_reader_take(struct wake_reader *reader,
			 void (*take)(void *to, const struct wake_row *row), void *to);
/* True if the waker's code ran on a stack of its own, or on that of no thread: an interrupt. An
 * interrupt that came in user mode runs on the thread's stack. */
bool wake_row_interrupts(const struct wake_reader *reader, const struct wake_row *row);
void wake_reader_done(struct wake_reader *reader);

#endif
