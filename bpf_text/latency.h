/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of durations, kept by the probes of --trace, and their keys. gcc includes this file;
 * the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_LATENCY_H
#define TSNAP_LATENCY_H

/* Kinds of durations, latency_key.kind: a row of src/live/trace_table.c each. */
#define LATENCY_RUNQ 0
#define LATENCY_OFFCPU 1
#define LATENCY_BLOCK 2
#define LATENCY_BLOCKQ 3
#define LATENCY_SYSCALLS 4
#define LATENCY_EXEC 5
#define LATENCY_CONNECTIONS 6
#define LATENCY_OPENS 7	 /* failed ones */
#define LATENCY_OPENED 8 /* the others */
#define LATENCY_INCIDENTS 9
#define LATENCY_WORK 10
#define LATENCY_IRQ 11
#define LATENCY_DNS 12
#define LATENCY_KIND_COUNT 13
/* Kinds that are events alone: they have no histograms. */
#define LATENCY_EVENTS_ONLY                                                     \
	(1u << LATENCY_EXEC | 1u << LATENCY_CONNECTIONS | 1u << LATENCY_OPENS | \
	 1u << LATENCY_OPENED | 1u << LATENCY_INCIDENTS | 1u << LATENCY_DNS)
/* Kinds of the user's own probes, up to the last bit of a mask. */
#define LATENCY_PROBE 28

/* Bucket 0: below 64 ns; then powers of two; the last one, from 69 s on, has no end. */
#define LATENCY_BUCKETS 32
#define LATENCY_SHIFT 5

/* Key of a histogram. A histogram has one writer at a time, the thread that it belongs to, so no
 * event is lost and none needs an atomic operation or a copy for each CPU. A kind whose events end
 * elsewhere must have the CPU among its own words. */
struct latency_key {
	__u32 kind;
	__u32 tid; /* the kernel's own */
	/* the thread's identity when the key was written, as in thread_identity: */
	__u32 shown_tid;
	__u32 tgid; /* 0 while not known, as the comm is empty then */
	__u32 uid;
	__u32 what[3]; /* the kind's own words; 0 where it has none */
	char comm[THREAD_COMM_SIZE];
} __attribute__((aligned(8)));

/* latency_key.what of LATENCY_OFFCPU */
#define OFFCPU_STATE 0	 /* task state bits */
#define OFFCPU_SYSCALL 1 /* system call's number; -1: in none */
#define OFFCPU_COMPAT 2	 /* 1: made through the 32-bit entry */

/* latency_key.what of LATENCY_BLOCK and LATENCY_BLOCKQ */
#define BLOCK_DEV 0 /* major << 20 | minor */
#define BLOCK_OP 1  /* block_request.op */
#define BLOCK_CPU 2 /* CPU of the writer: requests end on any */

/* latency_key.what of LATENCY_SYSCALLS */
#define SYSCALLS_CALL 0	 /* thread_state.call */
#define SYSCALLS_ERROR 1 /* errno, also those that only the kernel knows; 0: it succeeded */

/* latency_key.what of LATENCY_EXEC */
#define EXEC_PARENT 0	 /* process id of the parent */
#define EXEC_ARGUMENTS 1 /* number of arguments, with the program's name */

/* latency_key.what of LATENCY_OPENS and LATENCY_OPENED */
#define OPENS_CALL 0  /* system call's number */
#define OPENS_ERROR 1 /* errno */

/* latency_key.what of the user's own probes */
#define PROBE_MARKS 0 /* PROBE_BELOW, and the numbers of stacks */
#define PROBE_EACH 1  /* the value of each event, in two words: itself, or the key of a text */
/* Bits of PROBE_MARKS: the values were below 0, and belong to no bucket; then the number of the
 * user and of the kernel stack in ts_probe_stacks, plus 1. 0: none is known. */
#define PROBE_BELOW 1u
#define PROBE_USER_SHIFT 1
#define PROBE_KERNEL_SHIFT 16
#define PROBE_STACK_MASK 0x7fffu
#define PROBE_STACKS_MAX 16384
/* latency_key.what of LATENCY_WORK; the bucket also of calls that such probes measure */
#define WORK_CALL 0   /* number of the idle call */
#define WORK_BUCKET 1 /* bucket of the durations: there is a histogram for each, see work.h */

struct latency {
	__u64 sum_ns;
	__u64 max_ns;
	__u64 amount; /* bytes that were moved, or ns held back by a quota, or ns idle before a
			 piece of work; 0: the kind has none */
	__u32 buckets[LATENCY_BUCKETS];
};

/* Slot for a histogram that is found without a search. It belongs to the CPU that the event ended
 * on, so it has one writer at a time, too. On a collision the histogram falls back to the map.
 *
 * A program in an interrupt may come between another program's look at a free slot and its taking
 * it. So programs count themselves in claim_count first, and a program that is not the first does
 * not take the slot. */
#define LATENCY_SLOTS 256 /* slots of each CPU, a power of two */

struct latency_slot {
	struct latency_key key;
	__u32 claim_count;
	__u32 taken; /* 1: the key is whole */
	struct latency latency;
};

/* Two maps take turns: the sampler reads and empties the one that is not written. */
#define LATENCY_TURNS 2
#define LATENCY_MAX 16384 /* histograms in each map */

/* Each set of probes has numbers of its own, from LATENCY_TURN_FIRST on. So where a larger set
 * takes over (live_grow) and both are attached, this struct decides which of them counts and which
 * reports events. */
struct latency_control {
	__u32 turn;	 /* the first number of the set that counts, plus the map's; 0: none */
	__u32 event_set; /* the first number of the set that reports events; 0: none */
};

_Static_assert(sizeof(struct latency_key) == 48, "latency_key has no holes");
_Static_assert(sizeof(struct latency) == 152, "latency has no holes");

#endif
