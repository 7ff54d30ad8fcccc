/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of work (--trace work), as far as scans know of them: in which call a thread is idle, and
 * what threads were asleep in within a piece.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_WORK_H
#define TSNAP_LIVE_SCAN_LIVE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"
#include "live/context/live_context.h"

struct sample;

/* Samples of a thread asleep within pieces of work. */
struct work_sleep {
	struct latency_key key; /* of the thread, and of its idle call */
	uint32_t class;		/* index of the first rule of that wait class */
	int64_t samples;
};

/* Takes a sample of a thread that sleeps; it need not be wanted. compat: its call is that of a
 * 32-bit program. again: it is of a sleep that an earlier scan saw. */
void live_work_note(struct live_context *context, const struct thread_state *record,
		    const struct sample *sample, bool compat, bool again);

/* The sleeps that were noted since this was called last: an array of *count, valid until the next
 * is noted. */
const struct work_sleep *live_work_take(struct live_context *context, size_t *count);

#endif
