/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of threads that have slept since an earlier scan, if their samples are wanted: all of
 * them where idle threads are wanted, else only threads that work. A record stands still until its
 * thread is woken, so a scan copies it once, when the thread has fallen asleep; from then on the
 * copy is here.
 *
 * Some copies are passed by scans, since their threads' waits rest (live/live_repeat.h).
 *
 * A key stands for one record of the kernel's map (thread_state.key).
 */
#ifndef TSNAP_LIVE_LIVE_ASLEEP_H
#define TSNAP_LIVE_LIVE_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "live/live_repeat.h"
#include "live/sampler/live_capture.h"

#define ASLEEP_AHEAD 6

/* Zeroed is empty and valid. The copies are in no order; dropping one puts the last in its place.
 */
struct live_asleep {
	struct captured *copies;
	size_t count, capacity;
	struct id_map slots; /* key to slot in copies, plus one */
	/* waits of the copies that rest, by slot; those from rest_capacity on do not */
	struct repeat_rest *rests;
	size_t rest_capacity;
	struct live_repeat *repeat; /* has the samples of waits that rest; NULL: none do */
};

/* Drops the records that the capture has copied, or that are gone; all, if it has copied all. Call
 * before the capture's samples are made. */
void live_asleep_begin(struct live_asleep *asleep, const struct live_capture *capture);

/* Keeps the capture's copies of threads that sleep. Call after its samples were made. wanted: keys
 * of all that are wanted, others are dropped; NULL: all are wanted. round: of walks, see
 * live_asleep_seen(). May take the capture's memory, and empties it then. */
void live_asleep_end(struct live_asleep *asleep, struct live_capture *capture,
		     const struct index *wanted, unsigned int round);

bool live_asleep_has(struct live_asleep *asleep, uint32_t key);

void live_asleep_drop(struct live_asleep *asleep, uint32_t key);

/* Lets the wait of a sample rest, if its record has a copy (live_repeat_rest()). */
void live_asleep_rest(struct live_asleep *asleep, const struct repeated *repeated);
/* The rest of the copy in that slot; NULL: it does not rest. */
struct repeat_rest *live_asleep_rest_of(const struct live_asleep *asleep, size_t slot);
/* Ends the rest of the copy in that slot, or of all: scans look at them again. */
void live_asleep_rest_end(struct live_asleep *asleep, size_t slot);
void live_asleep_rests_end(struct live_asleep *asleep);
/* Notes with all samples which scans have passed them so far. */
void live_asleep_rests_settle(struct live_asleep *asleep);

/* True if a record that a walk over the kernel's map meets has a copy here. *later: the thread was
 * switched since, so that the next capture has it. */
bool live_asleep_seen(struct live_asleep *asleep, const struct thread_state *record, uint32_t key,
		      unsigned int round, bool *later);

/* Prefetches the copy that is ASLEEP_AHEAD slots before this one, so that it is in the cache when
 * it is visited. Call before each copy is visited, in falling order. */
static inline void live_asleep_prefetch(const struct live_asleep *asleep, size_t slot)
{
	const char *from;

	if (slot < ASLEEP_AHEAD)
		return;
	from = (const char *)&asleep->copies[slot - ASLEEP_AHEAD];
	for (size_t at = 0; at < sizeof(*asleep->copies); at += 64)
		__builtin_prefetch(from + at);
}

/* Drops copies that the walk did not meet: their records are gone, without notice. */
void live_asleep_sweep(struct live_asleep *asleep, unsigned int round);

void live_asleep_done(struct live_asleep *asleep);

#endif
