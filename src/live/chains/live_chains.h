/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait chains of the live host, for the columns blocker_tid to root_waits_on; no work is done and
 * no memory is used unless one of these is wanted.
 *
 * When a batch of a scan ends, chains are followed from its samples through the kernel's records:
 * also to threads that have no sample, such as idle ones; their registers are requested then. What
 * a thread waits for is read some 100 us after the scan time. So edges are as of that time, and
 * only of threads that have slept all the time from before until after: their switch numbers are
 * compared when all edges of the batch have been found, and lock words are read again.
 *
 * A thread is met once in a scan, however many chains lead to it.
 */
#ifndef TSNAP_LIVE_CHAINS_LIVE_CHAINS_H
#define TSNAP_LIVE_CHAINS_LIVE_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct live_chains;
struct live_context;
struct live_host;
struct sample;
struct source_status;

#define CHAIN_SLEEPERS_MAX 4

/* Threads of a sample's chain but the first: while all of them sleep on, so does the chain. */
struct chain_sleepers {
	bool known;  /* the chain's end is known, all threads sleep, and they are not too many */
	bool firm;   /* nothing else can change the chain (struct edge) */
	int64_t pid; /* process at the chain's end, if its threads can change that; 0: none can */
	uint32_t count;
	struct chain_sleeper {
		uint32_t key, tid; /* ids of its record, as the kernel numbers it */
		uint64_t sequence;
	} sleepers[CHAIN_SLEEPERS_MAX];
};

/* Keeps the record of a sample of the batch, by the sample's index. *chains: NULL until chains are
 * wanted. */
void live_chains_note(struct live_chains **chains, struct live_context *context,
		      const struct thread_state *record, size_t sample);
/* Fills the chains of a batch's samples at its end, but for samples with a tid of ABSENT. */
void live_chains_fill(struct live_chains **chains, struct live_context *context,
		      struct live_host *host, struct sample *samples, size_t count);
/* The sleepers of the chain of a batch's sample, by the sample's index; after live_chains_fill(),
 * until the next batch. */
const struct chain_sleepers *live_chains_sleepers(const struct live_chains *chains, size_t sample);
/* True if none of them was switched or woken since. */
bool chain_sleepers_sleep(const struct chain_sleepers *sleepers, struct live_context *context);
/* Adds to the status the chains that were not followed. */
void live_chains_describe(const struct live_chains *chains, struct source_status *status);
void live_chains_free(struct live_chains *chains); /* chains may be NULL */

#endif
