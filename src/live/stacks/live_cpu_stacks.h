/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads in a scan that are on their CPUs. Such a stack does not stand still: the
 * CPU is interrupted and both stacks are taken there, by the look that shows the system call
 * (maps/cpu_sampler.h). The sample gets them if its very thread ran there and had come on its CPU
 * before; else it gets none, which is counted.
 *
 * That look makes the kernel write a perf sample into the CPU's ring (maps/cpu_sample.h);
 * before 5.10 a perf clock ticks there once. cpu_sample takes it apart; its call chain loses the
 * frames of the interrupt and gets names from unwind/kernel_stack, so that it is the same stack as
 * /proc/TID/stack would show; the copy of the user stack goes to unwinder_walk(). Nothing is
 * open unless columns of stacks and the state ON are wanted.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_CPU_STACKS_H
#define TSNAP_LIVE_STACKS_LIVE_CPU_STACKS_H

#include "live/stacks/live_stacks_state.h"

struct source_status;

/* Must be called after kernel_open() and live_stacks_init(). */
void live_cpu_stacks_open(struct live_stacks *stacks);
/* Goes over to the maps of new probes. */
void live_cpu_stacks_move(struct live_stacks *stacks);

/* Fills the stacks of the sample with that index; the thread is on a CPU. False: it had left it by
 * then. */
bool live_cpu_stacks_add(struct live_stacks *stacks, const struct thread_state *record,
			 size_t sample);

/* Returns the kernel's functions by address. NULL: not known (yet). */
const struct kernel_symbols *live_kernel_symbols(struct live_stacks *stacks);

/* Adds what the footer of a report says. */
void live_cpu_stacks_describe(const struct live_stacks *stacks, struct source_status *status);
const char *live_cpu_stacks_way(const struct live_cpu_stacks *stacks); /* text for -v */

#endif
