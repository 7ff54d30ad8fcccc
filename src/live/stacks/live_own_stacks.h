/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of events of the user's own probes (--probe). The kernel walks them in the probe, in user
 * mode by frame pointers, and keeps each one once, by number (ts_probe_stacks). A key of an event
 * has the numbers, and this file gives them frames and names, while the process is there.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_OWN_STACKS_H
#define TSNAP_LIVE_STACKS_LIVE_OWN_STACKS_H

#include "live/stacks/live_stacks_state.h"

struct latency_key;

/* Opens the files of a key's stacks, and has their names looked for. until_ns: files have shares of
 * time; those that need more get more until then (monotonic). */
void live_own_stacks_want(struct live_stacks *stacks, const struct latency_key *key,
			  int64_t until_ns);
/* Fills the stacks of a sample of the key's thread. */
void live_own_stacks_fill(struct live_stacks *stacks, const struct latency_key *key,
			  struct sample *who);

#endif
