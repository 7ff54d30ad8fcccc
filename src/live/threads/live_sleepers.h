/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads in S of which a scan without -a must find out whether they work.
 *
 * A wait episode is judged once: in the scan in which it is listed as new, or, of threads that
 * slept before or that no list told of, in turn, some in each scan. Those that work, or may do so
 * later though they sleep on, are looked at again in each scan. Records are told by their key, a
 * episode by the switch sequence.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_SLEEPERS_H
#define TSNAP_LIVE_THREADS_LIVE_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/* Zeroed is empty. */
struct live_sleepers {
	struct index again, again_next; /* keys for this scan, and the next one */
	uint32_t *judged;		/* by key: sequence of the episode, plus one; 0: none */
	size_t judged_count;
	struct index judged_far; /* numbers as in judged, for keys beyond 32 bits */
	uint64_t *turn;		 /* keys that wait for theirs: a ring */
	size_t turn_first, turn_count;
};

/* True if the episode was judged, or waits for its turn. */
bool live_sleepers_judged(const struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Returns live_sleepers_judged(), and marks the episode as judged. */
bool live_sleepers_judge(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Judges in turn an episode that was not judged. */
void live_sleepers_queue(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence);
/* Takes the next one whose turn it is. False: there is none. */
bool live_sleepers_next(struct live_sleepers *sleepers, uint64_t *key);
/* It is to be looked at in the next scan. */
void live_sleepers_again(struct live_sleepers *sleepers, uint64_t key);
/* A new scan begins: what was for the next one is for this. */
void live_sleepers_turn_over(struct live_sleepers *sleepers);
void live_sleepers_clear(struct live_sleepers *sleepers);

#endif
