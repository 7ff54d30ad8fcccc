/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples' stacks from what switches kept before the scan time (maps/kept_stacks.h), or from
 * what was copied right after it (live_copies.h): what a thread does later does not matter to them.
 * Those of threads that have none there are read after the scan (live_stacks.c), if they still
 * stand.
 *
 * Only who has loaded the probes has stacks that switches keep: who attaches to those of another
 * tsnap has the copies alone.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_KEPT_H
#define TSNAP_LIVE_STACKS_LIVE_KEPT_H

#include "live/stacks/live_stacks_state.h"

/* After kernel_open() and live_stacks_init(). */
void live_kept_open(struct live_stacks *stacks);
void live_kept_close(struct live_kept *kept); /* also of a zeroed one */
/* The probes are others now. */
void live_kept_move(struct live_stacks *stacks);

/* The stacks that the thread of a sample had at the scan time, as numbers of the table of stacks.
 * running: it was on a CPU then. cut: also such whose user part is longer than what was kept.
 * False: none were kept. */
bool live_kept_stacks(struct live_stacks *stacks, const struct thread_state *record, bool running,
		      bool cut, uint32_t *user, uint32_t *kernel);

const char *live_kept_way(const struct live_stacks *stacks); /* for -v */

#endif
