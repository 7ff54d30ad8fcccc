/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values that threads hold between two probes (--context 'NAME = probe ...'), each of which is a
 * column:
 *
 *   bpf_text/probe_context.bpf.c, in the thread itself -> ts_held: a text's key, or the number
 *         copied with the record (live/sampler) -> live_held_fill(): the sample's column
 *
 * A text stays in the kernel's map of texts until many others have come: those that samples had are
 * known here.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_HELD_H
#define TSNAP_LIVE_SCAN_LIVE_HELD_H

#include "base/cache.h"
#include "base/text.h"
#include "live/context/live_context.h"
#include "maps/held_reader.h"
#include "sample/sample.h"

struct live_held {
	struct cache texts;  /* by their keys */
	uint64_t lost_count; /* texts of samples that had left the kernel's map */
};

/* Returns a text that a probe has read, with three dots if it was cut: a transient name. */
const char *live_probe_text(const struct probe_text *text);

void live_held_init(struct live_held *held);
void live_held_done(struct live_held *held);

/* Fills the columns. copy: what was copied with the record; NULL: it is read now. */
void live_held_fill(struct live_held *held, struct live_context *context,
		    const struct thread_state *record, const struct held_values *copy,
		    struct sample *sample);
/* Forgets texts that no sample has had lately. */
void live_held_sweep(struct live_held *held, int64_t now_ns);

#endif
