/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads in a scan that are off their CPUs: such a stack stands still until the next
 * switch. The number of the switch shows that it did; the same number as last time, that it is the
 * same stack.
 *
 * The registers that a walk begins with come from bpf_text/user_stack.bpf.c, a program of its own;
 * the number is looked at before and after. unwind/stack_names numbers frames and has a thread of
 * its own look their names up; a scan waits for them in the time that is left of its period.
 * unwind/stack_table is the dictionary: hash to frames, and to words. live_stacks_state keeps
 * each thread's last stack by tid for --off-wake, and has the stacks of wakers read that are off
 * their CPUs.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_STACKS_H
#define TSNAP_LIVE_STACKS_LIVE_STACKS_H

#include "live/stacks/live_kept.h"
#include "live/stacks/live_stacks_state.h"

/* Must be called when the context's wants are known. samples: array that stacks are added to. */
void live_stacks_init(struct live_stacks *stacks, struct live_context *context,
		      struct source *source, struct sample *samples);
/* Must be called after kernel_open(). */
void live_stacks_open(struct live_stacks *stacks);
/* Goes over to the maps of new probes, while no scan is made. */
void live_stacks_move(struct live_stacks *stacks);
void live_stacks_done(struct live_stacks *stacks); /* a zeroed one is fine */
/* Forgets all, before the records' numbers begin anew. The dictionary first gets what it lacks. */
void live_stacks_forget(struct live_stacks *stacks);
/* Forgets stacks and names, but not what was read of files, before transient names go. Counts that.
 */
void live_stacks_forget_words(struct live_stacks *stacks);

/* Fills the stacks of the sample with that index, or has them wait for live_stacks_fill_pending().
 */
void live_stacks_add(struct live_stacks *stacks, const struct thread_state *record, size_t sample);
/* Ends a batch: reads the stacks that wait, and fills the words of all its samples. */
void live_stacks_fill_pending(struct live_stacks *stacks);

/* Fills hashes and words of a sample that has these stacks: numbers of the table, or STACK_NONE. */
void live_stacks_words_fill(struct live_stacks *stacks, uint32_t user, uint32_t kernel,
			    struct sample *sample);

void live_stacks_ways(const struct live_stacks *stacks, struct text *to); /* lines for -v */
/* Adds what the footer of a report says. */
void live_stacks_describe(const struct live_stacks *stacks, struct source_status *status);

#endif
