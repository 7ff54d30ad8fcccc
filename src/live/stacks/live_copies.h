/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of threads that left their CPUs before the capture window (live_kept.h) and may run again
 * at any time: the thread that scans copies them right after the scan time, while it has real-time
 * priority; they are walked at leisure. A copy counts if the thread has not run until it was made.
 * Threads that wait for a CPU come first, then those that have slept for the shortest time; stacks
 * that are not reached within the budget are left to be read later. A stack that was copied once is
 * known to its reader until the thread runs.
 *
 * A copy may have to wait, for a lock of the process or a page; the keeper finds that out
 * (keeper/keeper).
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_COPIES_H
#define TSNAP_LIVE_STACKS_LIVE_COPIES_H

#include "live/stacks/live_stacks_state.h"

/* Opens the copies, where they are wanted. Must be called after live_kept_open(). */
void live_copies_open(struct live_stacks *stacks);
void live_copies_close(struct live_copies *copies); /* zeroed ones are fine */
/* Forgets what was copied, which may be copied again then. May be called only while no scan is
 * made. */
void live_copies_forget(struct live_copies *copies);
/* Copies the stacks of captured threads: stacks_copy of struct capture_wants. */
size_t live_copies_make(void *of, struct thread_table *table, const struct filter *filter,
			struct live_capture *capture);

#endif
