/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of work (--trace work): a slot for each record, with the call in which its thread waits
 * for something to do. gcc includes this file; the BPF text gets the same bytes pasted in.
 *
 * A piece begins when the thread is woken in that call, and ends when it falls asleep in it again.
 */
#ifndef TSNAP_WORK_H
#define TSNAP_WORK_H

/* What a piece consists of, by the thread's totals: they add up to its duration. */
#define WORK_CPU 0
#define WORK_RUNQ 1
#define WORK_DISK 2
#define WORK_SLEEP 3
#define WORK_PARTS 4

struct work_slot {
	/* The idle key, written by the sampler: begun_boot_ns last. */
	__u64 begun_boot_ns; /* thread_identity.start_boot_ns of the thread; 0: no key is known */
	__u64 argument;	     /* of the call, the first one, as far as argument_mask has it */
	__u64 argument_mask;
	__u32 call;  /* number of the system call */
	__u16 rank;  /* the sampler's own: see src/maps/idle_keys.h */
	__u16 votes; /* the sampler's own */
	/* Written by the switch, on the thread's own CPU. */
	__u64 idle;		  /* 1: the thread left its CPU in the idle call */
	__u64 began_ns;		  /* when the present piece began; 0: it is not known */
	__u64 idle_ns;		  /* time in the idle call before it */
	__u64 totals[WORK_PARTS]; /* the thread's totals when it began */
};

#define PROBE_PART_UNKNOWN (~0ull)

/* trace_event.data of LATENCY_WORK, and of calls that a probe of the user's own measures: these may
 * have PROBE_PART_UNKNOWN. */
struct work_parts {
	__u64 ns[WORK_PARTS];
};

/* What is added up of pieces, or calls, of one bucket: it takes the place of latency.buckets, as
 * the key of the histogram has the bucket. latency.amount is the time in the idle call before. */
struct work_sums {
	__u64 count;
	__u64 parts_ns[WORK_PARTS];
};

_Static_assert(sizeof(struct work_slot) == 88, "work_slot has no holes");
_Static_assert(sizeof(struct work_sums) <= 4 * LATENCY_BUCKETS, "work_sums fits a histogram");

#endif
