/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends of waits that scans have seen, for --critical-path. */
#ifndef TSNAP_LIVE_LIVE_WAKEUPS_H
#define TSNAP_LIVE_LIVE_WAKEUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/source.h"
#include "unwind/kernel_stack.h"

struct live_context;

/* Zeroed is empty. */
struct live_wakeups {
	struct kernel_symbols symbols;
	bool symbols_read;
	struct index followed; /* threads of paths, by tid */
	struct index entries;  /* return address to 1: an interrupt entered there, 2: none did */
};

/* Hands over ends of waits, as source->wakeups(). */
int64_t live_wakeups_take(struct live_wakeups *wakeups, struct live_context *context,
			  wake_callback *take, void *to);
/* Marks the thread as part of a path. */
void live_wakeups_follow(struct live_wakeups *wakeups, int64_t tid);
/* Returns the part of needs that is looked up for a sample: waits are not looked up for sleepers
 * that no path has led to, which may be very many. */
uint64_t live_wakeups_needs(const struct live_wakeups *wakeups, const struct sample *sample,
			    uint64_t needs);
void live_wakeups_done(struct live_wakeups *wakeups);

#endif
