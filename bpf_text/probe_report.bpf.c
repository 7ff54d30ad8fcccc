/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probes of the user's own report (--probe): calls, histograms, events. Comes after
 * probe.bpf.c and split.bpf.c.
 *
 * A call is matched with its return by the stack pointer, which no two calls share that a thread is
 * in: so recursion needs no counting, and a call that is left by longjmp(3) spoils no other. Its
 * entry stays until another call has the same stack pointer, or until the map takes it away.
 *
 * An interrupt may come between a program's reading and writing of a histogram, and add to the
 * same one at a tracepoint: so these additions are atomic. A maximum may be lost that way.
 *
 * Knobs: LATENCY_KINDS (latency.bpf.c). PROBE_EVENTS: each event is reported by itself.
 * PROBE_STACKS: events have the stacks of the thread, which the kernel walks, in user mode by frame
 * pointers.
 */

#define PROBE_CALLS_MAX 65536 /* calls at a time; an LRU map sets some aside for each CPU */

struct probe_call_key {
	__u64 stack;
	__u32 tid, probe;
};

struct probe_call {
	__u64 began_ns;
	__u64 totals[WORK_PARTS]; /* the thread's, then; all 0: not known */
	__u64 arguments[6];	  /* those that the return reads */
};

BPF_TABLE("lru_hash", struct probe_call_key, struct probe_call, ts_probe_calls, PROBE_CALLS_MAX);

/* timed: the return wants to know what the thread did in the call. */
static inline void probe_begins(__u32 probe, __u64 stack, struct probe_call *call, int timed)
{
	struct probe_call_key key = {};
	struct thread_state *thread = probe_thread();

	if (!thread)
		return;
	key.stack = stack;
	key.tid = bpf_get_current_pid_tgid();
	key.probe = probe;
	call->began_ns = bpf_ktime_get_ns();
	if (timed && !split_totals(thread, call->began_ns, call->totals))
		call->totals[WORK_CPU] = call->totals[WORK_RUNQ] = call->totals[WORK_DISK] =
			call->totals[WORK_SLEEP] = 0;
	ts_probe_calls.update(&key, call);
}

/* Returns 1 if the call's entry was seen, and takes what was kept then. */
static inline int probe_ends(__u32 probe, __u64 stack, struct probe_call *call)
{
	struct probe_call_key key = {};
	struct probe_call *kept;

	key.stack = stack;
	key.tid = bpf_get_current_pid_tgid();
	key.probe = probe;
	kept = ts_probe_calls.lookup(&key);
	if (!kept)
		return 0;
	*call = *kept;
	ts_probe_calls.delete(&key);
	return 1;
}

#ifdef PROBE_STACKS
BPF_TABLE("stacktrace", int, struct bpf_stacktrace, ts_probe_stacks, PROBE_STACKS_MAX);

#define PROBE_NO_PLACE (-17) /* -EEXIST */

static inline __u32 probe_stack_number(int number)
{
	__u32 zero = 0;
	struct probe_counters *counters;

	if (number >= 0)
		return (number + 1) & PROBE_STACK_MASK;
	counters = ts_counters.lookup(&zero);
	if (counters && number == PROBE_NO_PLACE)
		counters->probe_stacks++;
	return 0;
}

static inline __u32 probe_stacks(void *ctx)
{
	__u32 user = probe_stack_number(ts_probe_stacks.get_stackid(ctx, BPF_F_USER_STACK));
	__u32 kernel = probe_stack_number(ts_probe_stacks.get_stackid(ctx, 0));

	return user << PROBE_USER_SHIFT | kernel << PROBE_KERNEL_SHIFT;
}
#else
#define probe_stacks(CTX) 0
#endif

/* Fills the key of an event of the present thread. 0: it is none of the report's, as is a CPU's
 * idle task, which has no record. */
static inline int probe_key_fill(void *ctx, struct latency_key *key, struct thread_state *thread,
				 __u32 probe)
{
	if (!thread || !latency_key_fill(key, thread, LATENCY_PROBE + probe))
		return 0;
	key->what[PROBE_MARKS] = probe_stacks(ctx);
	return 1;
}

#ifdef PROBE_EVENTS
/* Reports an event by itself, with its value. */
static inline void probe_event(void *ctx, __u32 probe, __u64 value)
{
	struct latency_key key = {};
	struct trace_event *event;
	__u64 slot;

	if (!probe_key_fill(ctx, &key, probe_thread(), probe))
		return;
	key.what[PROBE_EACH] = value;
	key.what[PROBE_EACH + 1] = value >> 32;
	event = event_begin(&slot, &key, bpf_ktime_get_ns(), 0);
	if (event)
		event_end(event);
}

#define probe_count(CTX, PROBE) probe_event(CTX, PROBE, 0)
#define probe_ns probe_event
#define probe_amount probe_event
#define probe_each probe_event
#else
/* Adds an event to the histogram of the present thread. ns: what its bucket follows from. below:
 * PROBE_BELOW or 0. each: value by which events are counted; 0: none. */
static inline void probe_add(void *ctx, __u32 probe, __u64 ns, __u64 sum, __u32 below, __u64 each)
{
	struct latency_key key = {};
	struct latency *latency;
	__u64 bucket;

	if (!probe_key_fill(ctx, &key, probe_thread(), probe))
		return;
	key.what[PROBE_MARKS] |= below;
	key.what[PROBE_EACH] = each;
	key.what[PROBE_EACH + 1] = each >> 32;
	latency = latency_of(&key);
	if (!latency)
		return;
	/* to add a 0 that it knows of, clang takes an atomic "or", which kernels before 5.12 refuse
	 */
	asm volatile("" : "+r"(sum));
	__sync_fetch_and_add(&latency->sum_ns, sum);
	if (sum > latency->max_ns)
		latency->max_ns = sum;
	bucket = latency_bucket(ns) & (LATENCY_BUCKETS - 1);
	__sync_fetch_and_add(&latency->buckets[bucket], 1);
}

static inline void probe_count(void *ctx, __u32 probe)
{
	probe_add(ctx, probe, 0, 0, 0, 0);
}

/* A number of ns that may be below 0, which is no time. */
static inline void probe_ns(void *ctx, __u32 probe, __s64 ns)
{
	if (ns < 0)
		probe_add(ctx, probe, 0, 0, PROBE_BELOW, 0);
	else
		probe_add(ctx, probe, ns, ns, 0, 0);
}

/* An amount, in buckets that begin at 1. */
static inline void probe_amount(void *ctx, __u32 probe, __s64 amount)
{
	if (amount < 0)
		probe_add(ctx, probe, 0, 0, PROBE_BELOW, 0);
	else
		probe_add(ctx, probe,
			  (amount > 0xffffffff ? 0xffffffffull : (__u64)amount) << LATENCY_SHIFT,
			  amount, 0, 0);
}

/* Counts an event by a value. */
static inline void probe_each(void *ctx, __u32 probe, __u64 value)
{
	probe_add(ctx, probe, 0, 0, 0, value);
}
#endif

/* Adds a call's time. What the thread did in it is known if that adds up to the time: so it does
 * unless a switch was not seen. */
static inline void probe_time(void *ctx, __u32 probe, __u64 now_ns, struct probe_call *call)
{
	__u64 ns = now_ns - call->began_ns, totals[WORK_PARTS] = {};
	struct thread_state *thread = probe_thread();
	struct latency_key key = {};
	struct work_parts parts;
	struct latency *latency;
	int known;

	if (!probe_key_fill(ctx, &key, thread, probe))
		return;
	known = split_totals(thread, now_ns, totals);
	known &= split_parts(call->totals, totals, parts.ns) == ns;
#ifdef PROBE_EVENTS
	if (!known)
		parts.ns[WORK_CPU] = parts.ns[WORK_RUNQ] = parts.ns[WORK_DISK] =
			parts.ns[WORK_SLEEP] = PROBE_PART_UNKNOWN;
	event_report(&key, now_ns, ns, &parts);
#else
	key.what[WORK_BUCKET] = latency_bucket(ns);
	slow_event(&key, thread, now_ns, ns); /* there may be no histograms */
	latency = latency_of(&key);
	if (latency)
		split_add(latency, ns, known ? parts.ns : 0);
#endif
}
