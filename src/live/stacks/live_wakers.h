/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of those that woke the sampled threads last (--off-wake). What a waker did when it woke
 * somebody is not known: nothing is read at wake-ups. Told is where it is in this scan, or, while
 * it can't be read as it runs, where it was in its own last sample.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_WAKERS_H
#define TSNAP_LIVE_STACKS_LIVE_WAKERS_H

#include "live/stacks/live_stacks_state.h"

void live_wakers_init(struct live_stacks *stacks);
/* The sample's waker is to be told. */
void live_wakers_want(struct live_stacks *stacks, const struct sample *sample);
/* A stack of that thread was read in this scan. */
void live_wakers_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel);
/* The wakers that are to be told, are off their CPUs and were not sampled yet, in turn: *at starts
 * at 0. False: there are no more, and nobody is to be told. */
bool live_wakers_next(struct live_stacks *stacks, size_t *at, struct thread_state *record);
void live_wakers_fill(struct live_stacks *stacks, struct sample *sample);

#endif
