/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hands the stacks that samples had to the callback that keeps a dictionary of them
 * (source->stack_take), each one when the names of its functions are known. */
#ifndef TSNAP_LIVE_STACKS_LIVE_DICTIONARY_H
#define TSNAP_LIVE_STACKS_LIVE_DICTIONARY_H

#include "live/stacks/live_stacks_state.h"

/* Adds a stack that a sample of that user has. */
void live_dictionary_add(struct live_stacks *stacks, uint32_t stack, int64_t uid);
/* Hands over the stacks whose names are known; all: the others, too, as they are. */
void live_dictionary_give(struct live_stacks *stacks, bool all);
/* Implements source->stacks_anew. */
void live_dictionary_anew(struct live_stacks *stacks);
/* Implements source->stacks_end: waits for the names, but not for ever. */
void live_dictionary_end(struct live_stacks *stacks);

#endif
