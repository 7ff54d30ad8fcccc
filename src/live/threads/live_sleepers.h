/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads in S for which a scan without -a must find out whether they work.
 *
 * A wait episode is judged once: in the scan in which it is listed as new. Threads that slept
 * before, or that no list has reported, are judged in turn, some in each scan. Threads that work,
 * or may do so later though they sleep on, are looked at again in each scan. A record is identified
 * by its key, an episode by the switch sequence.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_SLEEPERS_H
#define TSNAP_LIVE_THREADS_LIVE_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/* A zeroed struct is empty. */
struct live_sleepers {
	struct index again, again_next; /* keys for this scan, and the next one */
	uint32_t *judged;		/* sequence of each key's episode, plus one; 0: none */
	size_t judged_count;
	struct index judged_far; /* numbers as in judged, for keys beyond 32 bits */
	uint64_t *turn;		 /* keys that wait for their turn: a ring */
	size_t turn_first, turn_count;
};

/* True if the episode was judged, or waits for its turn. */
bool live_sleepers_judged(const struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Returns live_sleepers_judged(), and marks the episode as judged. */
bool live_sleepers_judge(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Judges in turn an episode that was not judged. */
void live_sleepers_queue(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Takes the next key whose turn it is. False: there is none. */
bool live_sleepers_next(struct live_sleepers *sleepers, uint64_t *key);
/* Has the next scan look at the thread again. */
void live_sleepers_again(struct live_sleepers *sleepers, uint64_t key);
/* Begins a new scan: keys that were for the next scan are for this one. */
void live_sleepers_turn_over(struct live_sleepers *sleepers);
void live_sleepers_clear(struct live_sleepers *sleepers);

#endif
