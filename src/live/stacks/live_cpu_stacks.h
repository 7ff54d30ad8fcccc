/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of the threads in a scan that are on their CPUs. Such a stack does not stand still: the
 * CPU is interrupted and both stacks are taken there, by the look that tells the system call
 * (maps/cpu_sampler.h). They are the sample's if the very thread ran there and had come on
 * its CPU before; else there are none, which is counted.
 *
 * That look makes the kernel write a perf sample into the CPU's ring (maps/cpu_ring.h); before 5.10
 * a perf clock ticks there once.
 * cpu_sample takes it apart; its call chain loses the frames of the interrupt and gets names
 * from unwind/elf/kernel_symbols, so that it is the same stack as /proc/TID/stack would tell;
 * the copy of the user stack goes to unwinder_walk_copied(). Nothing is open unless columns of
 * stacks and the state ON are wanted.
 */
#ifndef TSNAP_LIVE_STACKS_LIVE_CPU_STACKS_H
#define TSNAP_LIVE_STACKS_LIVE_CPU_STACKS_H

#include "maps/cpu_sampler.h"
#include "kernel/record.h"

struct live_cpu_stacks {
	struct cpu_sampler sampler;
	int err; /* why there are none, or 0 */
	bool wanted, names_lacking;
	uint64_t gone_count; /* samples without a stack: the thread had left its CPU by then */
	uint64_t functions_refused; /* of the kernel, beyond those that are kept */
};

struct live;
struct source_facts;

/* After kernel_open() and live_stacks_init(). */
void live_cpu_stacks_open(struct live *live);
void live_cpu_stacks_close(struct live_cpu_stacks *stacks); /* also of zeroed ones */
/* The probes are others now. */
void live_cpu_stacks_move(struct live *live);

/* Fills the stacks of the sample with that index; the thread is on a CPU. */
void live_cpu_stacks_add(struct live *live, const struct thread_state *record, size_t sample);

/* The kernel's functions by address, NULL: not known (yet). */
const struct kernel_symbols *live_kernel_symbols(struct live *live);

/* Adds what the foot of a report tells. */
void live_cpu_stacks_describe(const struct live *live, struct source_facts *facts);
const char *live_cpu_stacks_way(const struct live_cpu_stacks *stacks); /* for -v */

#endif
