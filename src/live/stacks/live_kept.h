/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of samples as they were at the scan time: what a thread does later does not matter to
 * them. Stacks of other threads are read after the scan (live_stacks.c), if they still stand.
 *
 * Switches keep those of threads that leave their CPUs in the capture window before the scan time
 * (maps/kept_stacks.h). Only the tsnap that has loaded the probes has these.
 *
 * Threads that left their CPUs before may run again at any time: the thread that scans copies their
 * stacks right after the scan time, while it has real-time priority; they are walked at leisure. A
 * copy counts if the thread has not run until it was made. Threads that wait for a CPU come first,
 * then those that have slept for the shortest time; stacks that are not reached within the budget
 * are left to be read later. A stack that was copied once is known to its reader until the thread
 * runs. A copy may have to wait, for a lock of the process or a page; the keeper finds that out
 * (keeper/keeper).
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_KEPT_H
#define TSNAP_LIVE_STACKS_LIVE_KEPT_H

#include "live/stacks/live_stacks_state.h"

/* Must be called after kernel_open() and live_stacks_init(). */
void live_kept_open(struct live_stacks *stacks);
void live_kept_close(struct live_stacks *stacks); /* takes zeroed ones */
/* Goes over to the maps of new probes, and forgets what was copied, which may be copied again then.
 * May be called only while no scan is made. */
void live_kept_move(struct live_stacks *stacks);
/* Copies the stacks of captured threads: stacks_copy of struct capture_wants. */
size_t live_copies_make(void *of, struct thread_table *table, const struct filter *filter,
			struct live_capture *capture);

/* Finds the stacks that the thread of a sample had at the scan time, as numbers of the table of
 * stacks. running: the thread was on a CPU then. cut: also stacks whose user part is longer than
 * what was kept, or lacks its functions of Python. False: none were kept. */
bool live_kept_stacks(struct live_stacks *stacks, const struct thread_state *record, bool running,
		      bool cut, uint32_t *user, uint32_t *kernel);

const char *live_kept_way(const struct live_stacks *stacks); /* text for -v */

#endif
