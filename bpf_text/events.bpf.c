/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way by which single events reach the sampler; comes after latency.bpf.c, whose keys the
 * events have.
 *
 * Knobs: EVENTS, without which this fragment is not there; SLOWER_NS: what takes at least as long
 * is reported.
 */

BYTES_OF(event_ring);
BPF_F_TABLE("array", __u32, struct event_ring_bytes, ts_events, CPUS_MAX, MAPPED_FLAG);

/* Takes the next slot of this CPU's ring; *slot is its number since the beginning. 0: this set of
 * probes does not report events, or an interrupt's event came between, and it is not known whose
 * slot it is. The reader finds a slot that was not filled. */
static inline int event_take(__u64 *slot)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	struct latency_control *control = ts_latency.lookup(&zero);
	struct event_ring *ring;
	__u64 before;

	if (!control || control->event_set != LATENCY_TURN_FIRST)
		return 0;
	ring = (struct event_ring *)ts_events.lookup(&cpu);
	if (!ring)
		return 0;
	before = ring->count;
	__sync_fetch_and_add(&ring->count, 1);
	ORDERED();
	*slot = before;
	return ring->count == before + 1;
}

/* Returns the event of a slot that was taken. To be called again after each helper call, over which
 * the compiler may put an address, or a number that it is made of, on the stack: 4.9 takes no
 * number into account that is added to an address from there, and verifiers before 5.10 forget the
 * bounds of a number that was there. So the ring is looked up, and address and bound are made in
 * one go. */
static inline struct trace_event *event_at(__u64 slot)
{
	__u32 cpu = bpf_get_smp_processor_id();
	char *at = (char *)ts_events.lookup(&cpu);

	if (!at)
		return 0;
	asm volatile("%1 &= %2\n\t%1 *= %3\n\t%0 += %1"
		     : "+r"(at), "+r"(slot)
		     : "i"(EVENTS_MAX - 1), "i"(sizeof(struct trace_event)));
	return (struct trace_event *)(at + __builtin_offsetof(struct event_ring, events));
}

/* Address of a byte of the event's data, for a function with a variable `slot`, which returns 0 if
 * there is no event. */
#define EVENT_DATA(AT)                                      \
	({                                                  \
		struct trace_event *event = event_at(slot); \
                                                            \
		if (!event)                                 \
			return 0;                           \
		(__u64 *)(event->data + (AT));              \
	})

/* Takes a slot and fills all but the kind's own data. Returns the event, or NULL. */
static inline struct trace_event *event_begin(__u64 *slot, struct latency_key *key, __u64 end_ns,
					      __u64 duration_ns)
{
	struct trace_event *event;

	if (!event_take(slot))
		return 0;
	event = event_at(*slot);
	if (!event)
		return 0;
	event->begun = *slot + 1;
	ORDERED();
	event->end_ns = end_ns;
	event->duration_ns = duration_ns;
	event->key = *key;
	event->data_bytes = 0;
	return event;
}

static inline void event_end(struct trace_event *event)
{
	ORDERED();
	event->done = event->begun;
}

/* Reports an event with the data that DATA points to. */
#define event_report(KEY, END_NS, DURATION_NS, DATA)                                      \
	({                                                                                \
		__u64 slot;                                                               \
		struct trace_event *event = event_begin(&slot, KEY, END_NS, DURATION_NS); \
                                                                                          \
		if (event) {                                                              \
			__builtin_memcpy(event->data, DATA, sizeof(*(DATA)));             \
			event->data_bytes = sizeof(*(DATA));                              \
			event_end(event);                                                 \
		}                                                                         \
	})

/* Copies the registers of the thread with that stack into the event of a slot. Returns the number
 * of bytes. */
static inline __u32 event_registers(__u64 slot, __u64 kernel_stack)
{
#if KERNEL_STACK_REGISTERS
	__u64 from = kernel_stack + KERNEL_STACK_REGISTERS;

#define REGISTER_TO(AT) EVENT_DATA(8 * (AT))
	REGISTER_PIECES(REGISTER_PIECE)
#undef REGISTER_TO
	return 8 * THREAD_REGISTER_COUNT;
#else
	return 0;
#endif
}

/* Reports a slow wait or call, with registers, of a thread that is in the kernel now or is coming
 * back to where it was. */
static inline void slow_event(struct latency_key *key, struct thread_state *thread, __u64 end_ns,
			      __u64 duration_ns)
{
#ifdef SLOWER_NS
	__u32 bytes = 0;
	struct trace_event *event;
	__u64 slot;

	if (duration_ns < SLOWER_NS || !event_begin(&slot, key, end_ns, duration_ns))
		return;
	if (!(thread->identity.task_flags & KERNEL_THREAD_FLAGS) && thread->kernel_stack)
		bytes = event_registers(slot, thread->kernel_stack);
	event = event_at(slot);
	if (!event)
		return;
	event->data_bytes = bytes;
	event_end(event);
#endif
}

/* Reports a slow request that moved that many bytes, whatever thread is on the CPU. */
static inline void slow_event_bytes(struct latency_key *key, __u64 bytes, __u64 end_ns,
				    __u64 duration_ns)
{
#ifdef SLOWER_NS
	if (duration_ns >= SLOWER_NS)
		event_report(key, end_ns, duration_ns, &bytes);
#endif
}
