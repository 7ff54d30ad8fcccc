/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads in a scan that are off their CPUs: such a stack stands still until the next
 * switch. The number of the switch shows that it did; the same number as last time, that it is the
 * same stack.
 *
 * The registers that a walk begins with come from bpf_text/user_stack.bpf.c, a program of its own;
 * the number is looked at before and after. unwind/stack_names numbers frames and has a thread of
 * its own look their names up; a scan waits for them in the time that is left of its period.
 * unwind/stack_table is the dictionary: hash to frames, and to words. live_wakers keeps each
 * thread's last stack by tid for --off-wake, and has the stacks of wakers read that are off their
 * CPUs.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_STACKS_H
#define TSNAP_LIVE_STACKS_LIVE_STACKS_H

#include <stdint.h>

#include "live/stacks/live_stacks_state.h"

/* Must be called when the context's wants are known. samples: array that stacks are added to. */
void live_stacks_init(struct live_stacks *stacks, struct live_context *context,
		      struct source *source, struct sample *samples);
void live_stacks_done(struct live_stacks *stacks); /* a zeroed one is fine */
/* Forgets all, before the records' numbers begin anew. The dictionary first gets what it lacks. */
void live_stacks_forget(struct live_stacks *stacks);
/* Forgets stacks and names, but not what was read of files, before transient names go. Counts that.
 */
void live_stacks_forget_words(struct live_stacks *stacks);

/* Fills the stacks of the sample with that index, or has them wait for live_stacks_fill_pending().
 */
void live_stacks_add(struct live_stacks *stacks, const struct thread_state *record, size_t sample);
/* Fills the stacks of the sample as a switch out kept them. False: none did. */
bool live_stacks_add_kept(struct live_stacks *stacks, const struct thread_state *record,
			  size_t sample);
/* Reads the stacks of a thread off its CPU that has no sample, for live_wakers. */
void live_stacks_add_other(struct live_stacks *stacks, const struct thread_state *record);
/* Sets the stacks of the sample with that index: numbers of the table, or STACK_NONE. */
void live_stacks_set(struct live_stacks *stacks, size_t sample, uint32_t user, uint32_t kernel);
/* Counts a thread's stacks that could not be read (-errno, or 0), unless it was ending. */
void live_stacks_unread(struct live_stacks *stacks, const struct thread_identity *identity,
			int user_err, int kernel_err);
/* Returns the thread of that record, at the scan time, for a walk over its stack. */
struct stack_thread live_stack_thread(const struct live_stacks *stacks,
				      const struct thread_state *record);
/* Returns why a walk found nothing: -EPERM, -ESRCH, or 0. */
int walk_error(const struct stack_walk *walk);
/* Ends a batch: reads the stacks that wait, and fills the words of all its samples. */
void live_stacks_fill_pending(struct live_stacks *stacks);

/* Interface between live_stacks.c and live_waiting.c. The latter has the stacks of threads off
 * their CPUs: as the last switch kept them, as they were read since, or read now. Stacks that are
 * to be read wait, so that the registers of many are requested at once. */

/* Stacks that were read of a thread since its last switch. */
struct known_stacks {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	uint64_t sequence;
	uint32_t user, kernel;
	bool displaced; /* stacks as if the thread ran on */
};

/* Reads the stacks of all that wait. */
void live_waiting_take(struct live_stacks *stacks);
/* Notes that the words of the thread's stacks are wanted at this scan's end. The thread may be a
 * waker without a sample. */
void live_stacks_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel);

/* Adds what the footer of a report says. */
void live_stacks_describe(const struct live_stacks *stacks, struct source_status *status);

#endif
