/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads that woke the sampled ones last (--off-wake). What a waker did when it woke
 * another thread is not known: nothing is read at wake-ups. Its stack is the one that it has in
 * this scan, or, while that can't be read as it runs, the one of its own last sample. */
#ifndef TSNAP_LIVE_STACKS_LIVE_WAKERS_H
#define TSNAP_LIVE_STACKS_LIVE_WAKERS_H

#include "live/stacks/live_stacks_state.h"

void live_wakers_init(struct live_stacks *stacks);
/* Notes that the stacks of the sample's waker are wanted. */
void live_wakers_want(struct live_stacks *stacks, const struct sample *sample);
/* Notes the stacks of a thread that were read in this scan. */
void live_wakers_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel);
/* Finds the wakers that are wanted, are off their CPUs and have no stacks of this scan yet, in
 * turn: *at starts at 0. False: there are no more, and none is wanted any longer. */
bool live_wakers_next(struct live_stacks *stacks, size_t *at, struct thread_state *record);
void live_wakers_fill(struct live_stacks *stacks, struct sample *sample);

#endif
