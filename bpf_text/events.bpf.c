/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way by which single events reach the sampler; behind latency.bpf.c, whose keys they have.
 *
 * Knobs: EVENTS, without which this fragment is not there; SLOWER_NS: what takes longer is told.
 */

BPF_F_TABLE("array", __u32, struct event_ring, ts_events, CPUS_MAX, MAPPED_FLAG);

/* NULL: an interrupt's came between, and nobody knows whose place it is. The reader finds one that
 * was not filled. */
static inline struct trace_event *event_begin(struct latency_key *key, __u64 end_ns,
					      __u64 duration_ns)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	struct latency_control *control = ts_latency.lookup(&zero);
	struct event_ring *ring;
	struct trace_event *event;
	__u64 at, place;

	if (!control || control->teller != LATENCY_TURN_FIRST)
		return 0;
	ring = ts_events.lookup(&cpu);
	if (!ring)
		return 0;
	at = ring->count;
	place = at + 1;
	__sync_fetch_and_add(&ring->count, 1);
	ORDERED();
	if (ring->count != place)
		return 0;
	/* old verifiers know a bound by a mask, which the compiler would leave out */
	asm volatile("%0 &= 511" : "+r"(at));
	event = &ring->events[at];
	event->begun = place;
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

#ifdef SLOWER_NS
static inline struct trace_event *slow_begin(struct latency_key *key, __u64 end_ns,
					     __u64 duration_ns)
{
	return duration_ns < SLOWER_NS ? 0 : event_begin(key, end_ns, duration_ns);
}
#endif

/* What a thread did that is in the kernel now, or is coming back to where it was. */
static inline void slow_tell(struct latency_key *key, struct thread_state *thread, __u64 end_ns,
			     __u64 duration_ns)
{
#ifdef SLOWER_NS
	struct trace_event *event = slow_begin(key, end_ns, duration_ns);

	if (!event)
		return;
#if KERNEL_STACK_REGISTERS
	if (thread->kernel_stack && !(thread->identity.task_flags & TASK_KTHREAD)) {
		registers_read((__u64 *)event->data, thread->kernel_stack);
		event->data_bytes = 8 * THREAD_REGISTER_COUNT;
	}
#endif
	event_end(event);
#endif
}

/* What moved so many bytes, whoever is on the CPU. */
static inline void slow_tell_bytes(struct latency_key *key, __u64 bytes, __u64 end_ns,
				   __u64 duration_ns)
{
#ifdef SLOWER_NS
	struct trace_event *event = slow_begin(key, end_ns, duration_ns);

	if (!event)
		return;
	*(__u64 *)event->data = bytes;
	event->data_bytes = sizeof(bytes);
	event_end(event);
#endif
}
