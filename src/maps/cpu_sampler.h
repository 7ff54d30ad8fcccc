/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples of what runs on CPUs right now, with its stacks: perf events, one for each CPU that was
 * looked at once, which are idle between looks. Nothing runs at scheduler switches.
 *
 * SAMPLE_BY_PROGRAM: a program is run on the CPU, in an interrupt of whatever runs there, and has
 * the kernel write a sample (5.10). It is the program of bpf_text/on_cpu.bpf.c, which looks at the
 * CPU anyhow, or where that belongs to another tsnap, one of a few instructions. SAMPLE_BY_TIMER: a
 * perf clock is started there for one tick. A perf clock that ends itself hangs the CPU with Linux
 * 6.16.8 to 6.17.7 ("perf/core: Fix system hang caused by cpu-clock usage"), so SAMPLE_BY_TIMER is
 * not used on these.
 */
#ifndef TSNAP_MAPS_CPU_SAMPLER_H
#define TSNAP_MAPS_CPU_SAMPLER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "maps/cpu_sample.h"

enum cpu_sampler_way { SAMPLE_BY_PROGRAM, SAMPLE_BY_TIMER };

struct cpu_sampler_options {
	enum cpu_sampler_way way;
	int cpus_possible;
	bool user, kernel;   /* stacks that samples have */
	bool frame_pointers; /* the kernel walks user stacks by frame pointers, else copies them */
	int64_t stack_bytes; /* bytes to copy of the user stack's top, a multiple of 8 */
	/* time to wait for a timer's tick: its CPU may have other interrupts, or be a virtual one
	 * that does not run */
	int64_t wait_ns;
	int events_map; /* ts_looked, not owned; -1: this sampler has a program of its own */
};

struct cpu_sampler_ring {
	struct cpu_ring ring;
	uint32_t silent_count; /* looks in a row that had no sample */
};

struct cpu_sampler {
	struct cpu_sampler_options options;
	struct perf_event_attr attr;
	int program, events;		/* program: -1 where the probes' program is run */
	struct cpu_sampler_ring *rings; /* a ring for each possible CPU; NULL: closed */
	int64_t look_ns;		/* time when the last look began */
};

/* Samples that one look at the CPUs has copied; zeroed is none. */
struct cpu_samples {
	struct cpu_record {
		size_t at, bytes;
	} * cpus;	  /* record of each possible CPU; at: index in copies; bytes 0: none */
	uint64_t *copies; /* copies of the records */
	size_t used, capacity;
};

/* Opens a zeroed sampler. 0, or -errno: it is closed; -EACCES, -EPERM: perf events are not
 * permitted. */
int cpu_sampler_open(struct cpu_sampler *sampler, const struct cpu_sampler_options *options);
void cpu_sampler_close(struct cpu_sampler *sampler); /* May be called for a zeroed sampler */

/* Has the programs of other maps write to the rings from now on. */
void cpu_sampler_move(struct cpu_sampler *sampler, int events_map);

/* Looks at those CPUs whose wanted byte is set. Where kernel_ticks_read() runs the program, only
 * prepares the rings. */
void cpu_sampler_look(struct cpu_sampler *sampler, const unsigned char *wanted);
/* Copies the samples of the last look; may wait for a timer, for a millisecond or two. */
void cpu_sampler_take(struct cpu_sampler *sampler, const unsigned char *wanted,
		      struct cpu_samples *samples);
void cpu_samples_done(struct cpu_samples *samples);
/* Gets a CPU's sample; *sample points into samples. May be called by any thread. False: the CPU has
 * none. */
bool cpu_sampler_get(const struct cpu_sampler *sampler, const struct cpu_samples *samples,
		     uint32_t cpu, struct cpu_sample *sample);

/* Returns the kernel memory that the sampler's rings take now; 0: it is closed. */
size_t cpu_sampler_ring_bytes(const struct cpu_sampler *sampler);

#endif
