/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lookups that stay within one wait episode. What is read of a thread after its record was copied
 * (the name of the file that a descriptor refers to, a path in its memory, the connection of a
 * socket, what it waits for) may be of its next system call already. The record shows it: the
 * thread was switched since. */
#ifndef TSNAP_LIVE_LIVE_EPISODE_H
#define TSNAP_LIVE_LIVE_EPISODE_H

#include <stdbool.h>
#include <stdint.h>

struct live_context;
struct lookup_hint;
struct sample;
struct source_status;
struct thread_state;

/* True if the thread is still in the episode that its record, of the kernel's map or of the seed,
 * shows. runs: its state is ON; that tsnap itself took its CPU, or gave it back, ends no episode.
 * Reads the record again: one look at memory where the array is mapped. */
bool live_episode_lasts(struct live_context *context, const struct thread_state *record, bool runs);

/* Calls lookup_fill(); what it has filled of a later episode becomes absent again, and is counted.
 */
void live_episode_fill(struct live_context *context, const struct thread_state *record,
		       struct sample *sample, const struct lookup_hint *hint, uint64_t needs);

/* Fills the system call of a thread that was not switched since the start (live_seed_call());
 * absent if it may be a later one. */
void live_episode_seed_call(struct live_context *context, const struct thread_state *record,
			    struct sample *sample, bool *compat);

void live_episode_describe(const struct live_context *context, struct source_status *facts);

#endif
