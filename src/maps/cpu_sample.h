/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf samples of what runs on a CPU: the ring that the kernel writes them to, and their parser. */
#ifndef TSNAP_MAPS_CPU_SAMPLE_H
#define TSNAP_MAPS_CPU_SAMPLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/user_registers.h"

/* A perf event of one CPU and the memory that the kernel writes its samples to
 * (perf_event_open(2)). A reader wants the newest sample only, or walks back from the newest
 * record.
 */

#define CPU_RECORD_BYTES_MAX 65536 /* the size of a record has 16 bits */

struct cpu_ring {
	int event; /* -1: closed */
	struct perf_event_mmap_page *page;
	size_t data_bytes; /* bytes after the page, a power of two */
};

/* Opens the event on a CPU, with a ring of at least data_bytes. 0 or -errno. */
int cpu_ring_open(struct cpu_ring *ring, struct perf_event_attr *attr, int cpu, size_t data_bytes);
void cpu_ring_close(struct cpu_ring *ring);

/* Returns the kernel memory that the ring takes; 0: it is closed. */
size_t cpu_ring_bytes(const struct cpu_ring *ring);

/* Empties the ring. */
void cpu_ring_clear(struct cpu_ring *ring);
/* Copies the newest sample to record, of CPU_RECORD_BYTES_MAX bytes. Returns its bytes, 0: there is
 * none. */
size_t cpu_ring_read(const struct cpu_ring *ring, void *record);

/* Returns where the newest record of an event with write_backward (4.7) begins; the kernel goes on
 * to fill such a ring over its oldest records. */
uint64_t cpu_ring_begin(const struct cpu_ring *ring);
/* Moves *at from a record to the next older one. begin: result of cpu_ring_begin(). Returns the
 * bytes of the record that *at was at; 0: there is none. */
size_t cpu_ring_next(const struct cpu_ring *ring, uint64_t begin, uint64_t *at);
/* Copies bytes from position at on. */
void cpu_ring_copy(const struct cpu_ring *ring, uint64_t at, void *to, size_t bytes);
/* True if records that end before position at can't have been overwritten yet. */
bool cpu_ring_kept(const struct cpu_ring *ring, uint64_t at);

/* A sample: stacks and registers of the thread that ran on a CPU. */
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
