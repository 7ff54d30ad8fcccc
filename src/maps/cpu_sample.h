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
	bool in_kernel;	 /* it came while the thread was in the kernel */
	uint32_t tid;	 /* tid in the pid namespace of the event's opener; 0: idle, or not in it */
	/* Call chains, innermost first; the user's along frame pointers. */
	const uint64_t *kernel, *user;
	uint32_t kernel_count, user_count;
	bool registers_known; /* the thread has a user part, with the registers below */
	struct user_registers registers;
	const void *stack; /* copy of the user stack from registers.sp on */
	size_t stack_bytes;
	const void *raw; /* data that a BPF program has added (PERF_SAMPLE_RAW); not aligned */
	size_t raw_bytes;
};

/* Sample type that a sample must have, always; it may have CALLCHAIN, RAW, REGS_USER and
 * STACK_USER. Other fields would lie between these, and are not known here. */
#define CPU_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* Parses record, a PERF_RECORD_SAMPLE of an event with that sample_type and mask of registers;
 * *sample points into it. 0, or -EBADMSG: it is no such record. */
int cpu_sample_parse(const void *record, size_t bytes, uint64_t sample_type,
		     uint64_t registers_mask, struct cpu_sample *sample);

/* First words of a sample record: perf_event_header, pid and tid, time, and for a type with
 * CALLCHAIN the length of the chain. */
struct cpu_sample_head {
	uint64_t header, ids, time, chain_count;
};

/* Returns the offset in a sample record, of a type with RAW, of the bytes that a program has added:
 * the larger parts after them need not be copied to identify the thread. SIZE_MAX: the record can't
 * be a sample. */
size_t cpu_sample_raw_at(const struct cpu_sample_head *head, uint64_t sample_type);

#endif
