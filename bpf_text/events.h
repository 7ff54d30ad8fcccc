/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events that probes report to the sampler, of whatever kind: a ring for each CPU. gcc
 * includes this file; the BPF text gets the same bytes pasted in.
 */
#ifndef TSNAP_EVENTS_H
#define TSNAP_EVENTS_H

#define EVENT_DATA_BYTES 272
#define EVENTS_MAX 512 /* unread events of a CPU, a power of two */

/* trace_event.data of LATENCY_EXEC: the name before, and then the arguments, each ended by a NUL; a
 * power of two, as a mask is a bound that every verifier knows. */
#define EXEC_ARGUMENT_BYTES 256

/* begun is written first and done last: an event whose two are equal in a copy made from done to
 * begun is whole. */
struct trace_event {
	__u64 done; /* index of the event since the start, plus one */
	__u64 end_ns;
	__u64 duration_ns;
	struct latency_key key;
	/* The kind's own data. For what a thread did: its registers, THREAD_REGISTER_COUNT words;
	 * for a request that moved bytes: their number, in 8 bytes. */
	__u32 data_bytes; /* 0: none */
	__u32 unused;
	char data[EVENT_DATA_BYTES];
	__u64 begun;
};

struct event_ring {
	__u64 count; /* events ever begun */
	struct trace_event events[EVENTS_MAX];
};

_Static_assert(sizeof(struct trace_event) == 88 + EVENT_DATA_BYTES, "trace_event has no holes");
_Static_assert(THREAD_COMM_SIZE + EXEC_ARGUMENT_BYTES <= EVENT_DATA_BYTES, "arguments fit");
_Static_assert(8 * THREAD_REGISTER_COUNT <= EVENT_DATA_BYTES, "registers fit");

#endif
