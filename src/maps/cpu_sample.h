/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parser of perf samples: stacks and registers of the thread that ran on a CPU. Pure.
 */
#ifndef TSNAP_MAPS_CPU_SAMPLE_H
#define TSNAP_MAPS_CPU_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/user_registers.h"

struct cpu_sample {
	int64_t time_ns; /* monotonic */
	uint32_t tid;	 /* in the pid namespace of who opened the event; 0: idle, or not in it */
	/* Call chains, innermost first; the user's along frame pointers. */
	const uint64_t *kernel, *user;
	uint32_t kernel_count, user_count;
	bool registers_known; /* it has a user part, and these are its registers */
	struct user_registers registers;
	const void *stack; /* a copy from registers.sp on */
	size_t stack_bytes;
	const void *raw; /* data that a BPF program has added (PERF_SAMPLE_RAW); not aligned */
	size_t raw_bytes;
};

/* Sample type that a sample must have, always; it may have CALLCHAIN, RAW, REGS_USER and
 * STACK_USER. Other fields would lie between these, and are not known here. */
#define CPU_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* record: a PERF_RECORD_SAMPLE of an event with that sample_type and mask of registers; *sample
 * points into it. 0, or -EBADMSG: it is none. */
int cpu_sample_parse(const void *record, size_t bytes, uint64_t sample_type,
		     uint64_t registers_mask, struct cpu_sample *sample);

/* The first words of such a record: perf_event_header, pid and tid, time, and of a type with
 * CALLCHAIN how long that is. */
struct cpu_sample_head {
	uint64_t header, ids, time, chain_count;
};

/* Returns the offset in a sample record, of a type with RAW, of the bytes that a program has added;
 * so its larger parts, which come behind them, need not be copied to know whose it is. SIZE_MAX: it
 * can't be one. */
size_t cpu_sample_raw_at(const struct cpu_sample_head *head, uint64_t sample_type);

#endif
