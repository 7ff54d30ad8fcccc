/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of samples that switches kept before the scan time (maps/kept_stacks.h), or that were
 * copied right after it (live_copies.h): what a thread does later does not matter to them. Stacks
 * of other threads are read after the scan (live_stacks.c), if they still stand.
 *
 * Only the tsnap that has loaded the probes has stacks that switches keep. One that attaches to the
 * probes of another has the copies alone.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_KEPT_H
#define TSNAP_LIVE_STACKS_LIVE_KEPT_H

#include "live/stacks/live_stacks_state.h"

/* Must be called after kernel_open() and live_stacks_init(). */
void live_kept_open(struct live_stacks *stacks);
void live_kept_close(struct live_kept *kept); /* a zeroed one is fine */
/* Goes over to the maps of new probes. */
void live_kept_move(struct live_stacks *stacks);

/* Finds the stacks that the thread of a sample had at the scan time, as numbers of the table of
 * stacks. running: the thread was on a CPU then. cut: also stacks whose user part is longer than
 * what was kept, or lacks its functions of Python. False: none were kept. */
bool live_kept_stacks(struct live_stacks *stacks, const struct thread_state *record, bool running,
		      bool cut, uint32_t *user, uint32_t *kernel);

const char *live_kept_way(const struct live_stacks *stacks); /* text for -v */

#endif
