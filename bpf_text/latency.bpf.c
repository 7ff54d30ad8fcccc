/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms of --trace: each probe counts a duration in the histogram of its key.
 *
 * Knobs: LATENCY_KINDS, bits 1 << LATENCY_x of the kinds that are wanted; not defined: none, and
 * this fragment is not there. LATENCY_TURN_FIRST: see latency.h. TRACE_WANTED(identity): true for
 * threads whose waits and calls are measured; not defined: all threads. KERNEL_THREAD_FLAGS:
 * kernel_thread_flags() of src/kernel. REGISTERS_MARKED: as registers_decode() there takes it.
 */

#ifndef EVENTS /* events.bpf.c */
#define slow_event(key, thread, end_ns, duration_ns)
#define slow_event_bytes(key, bytes, end_ns, duration_ns)
#endif
#define LATENCY_HAS(kind) (LATENCY_KINDS & (1u << (kind)))

#if LATENCY_KINDS & ~LATENCY_EVENTS_ONLY
#define LATENCY_ENTRIES LATENCY_MAX
#ifdef THREAD_SLOTS
#define LATENCY_IN_SLOTS 1
#endif
#else
#define LATENCY_ENTRIES 1
#endif

BPF_TABLE("hash", struct latency_key, struct latency, ts_latency_one, LATENCY_ENTRIES);
BPF_TABLE("hash", struct latency_key, struct latency, ts_latency_two, LATENCY_ENTRIES);
BPF_TABLE("array", __u32, struct latency_control, ts_latency, 1);
#ifdef LATENCY_IN_SLOTS
BPF_F_TABLE("array", __u32, struct latency_slot, ts_slots_one, CPUS_MAX *LATENCY_SLOTS,
	    MAPPED_FLAG);
BPF_F_TABLE("array", __u32, struct latency_slot, ts_slots_two, CPUS_MAX *LATENCY_SLOTS,
	    MAPPED_FLAG);
#endif

static inline void latency_full_count(void)
{
	__u32 zero = 0;
	struct probe_counters *counters = ts_counters.lookup(&zero);

	if (counters)
		counters->latency_full++;
}

static inline struct latency *latency_find(__u32 turn, struct latency_key *key)
{
	return !turn ? ts_latency_one.lookup(key) : ts_latency_two.lookup(key);
}

/* uses insert: another program may have come between and made the histogram, and its counts must
 * stay */
static inline struct latency *latency_make(__u32 turn, struct latency_key *key)
{
	struct latency fresh = {};

	if (!turn)
		ts_latency_one.insert(key, &fresh);
	else
		ts_latency_two.insert(key, &fresh);
	return latency_find(turn, key);
}

/* Returns a key's histogram if it is in a slot that needs no search, else NULL. Needs memory that
 * the sampler maps, as the record's array does (THREAD_SLOTS). */
static inline struct latency *latency_slot_of(__u32 turn, struct latency_key *key)
{
#ifdef LATENCY_IN_SLOTS
	__u32 mixed = key->tid + key->kind * 11 + key->what[0] * 31 + key->what[1] * 7;
	__u32 at = bpf_get_smp_processor_id() * LATENCY_SLOTS +
		   ((mixed * 0x9e3779b1u) >> 24) % LATENCY_SLOTS;
	struct latency_slot *slot = !turn ? ts_slots_one.lookup(&at) : ts_slots_two.lookup(&at);
	__u64 *mine = (__u64 *)key, *its;

	if (!slot)
		return 0;
	if (!slot->claim_count) {
		__sync_fetch_and_add(&slot->claim_count, 1);
		ORDERED();
		if (slot->claim_count != 1)
			return 0;
		slot->key = *key;
		ORDERED();
		slot->taken = 1;
	}
	if (!slot->taken)
		return 0;
	its = (__u64 *)&slot->key;
	if ((mine[0] ^ its[0]) | (mine[1] ^ its[1]) | (mine[2] ^ its[2]) | (mine[3] ^ its[3]) |
	    (mine[4] ^ its[4]) | (mine[5] ^ its[5]))
		return 0;
	return &slot->latency;
#else
	return 0;
#endif
}

static inline __u64 is_same(__u32 one, __u32 other)
{
	__u64 difference = one ^ other;

	difference -= 1;
	asm volatile("" : "+r"(difference));
	return difference >> 63;
}

/* Returns the histogram of a key, all of which must be initialised. 0: none is wanted now, or
 * there is no room, which is counted. */
static inline struct latency *latency_of(struct latency_key *key)
{
	__u32 zero = 0;
	struct latency_control *control = ts_latency.lookup(&zero);
	struct latency *latency;
	__u32 turn;

	if (!control)
		return 0;
	turn = control->turn - LATENCY_TURN_FIRST;
	if (turn >= LATENCY_TURNS)
		return 0;
	latency = latency_slot_of(turn, key);
	if (!latency)
		latency = latency_find(turn, key);
	if (!latency)
		latency = latency_make(turn, key);
	if (!latency)
		latency_full_count();
	return latency;
}

/* Adds a duration and an amount to the histogram of a key. */
static inline void latency_add_amount(struct latency_key *key, __u64 ns, __u64 amount)
{
	struct latency *latency = latency_of(key);
	__u64 bucket;

	if (!latency)
		return;
	latency->sum_ns += ns;
	latency->amount += amount;
	if (ns > latency->max_ns)
		latency->max_ns = ns;
	bucket = latency_bucket(ns);
	/* old verifiers know a bound by a mask, which the compiler would leave out */
	asm volatile("%0 &= 31" : "+r"(bucket));
	latency->buckets[bucket]++;
	/* hides which map the histogram was of, so that both ways are one from here on: see
	 * ways_meet() */
	asm volatile("%0 = 0" : "+r"(latency));
}

/* Counts a duration that has no amount. */
static inline void latency_add(struct latency_key *key, __u64 ns)
{
	latency_add_amount(key, ns, 0);
}

/* Fills in a key. 0: the thread is outside of the pid namespace that users see, or not wanted. */
static inline int latency_key_fill(struct latency_key *key, struct thread_state *thread, __u32 kind)
{
#ifdef PID_NAMESPACE
	if (!(thread->identity.known & IDENTITY_FULL) || !thread->identity.tid)
		return 0;
#endif
#ifdef TRACE_WANTED
	if (thread->identity.known & IDENTITY_FULL && !TRACE_WANTED(thread->identity))
		return 0;
#endif
	key->kind = kind;
	key->tid = thread->sched.tid;
	key->shown_tid = thread->identity.tid;
	key->tgid = thread->identity.tgid;
	key->uid = thread->identity.uid;
	key->what[0] = 0;
	key->what[1] = 0;
	key->what[2] = 0;
	__builtin_memcpy(key->comm, thread->identity.comm, sizeof(key->comm));
	return 1;
}

/* Returns the system call that a thread off its CPU is in, and in *compat whether it was made
 * through the 32-bit entry, as registers_decode() does from the same words. -1: in none, or not
 * known. */
static inline __u32 thread_call(struct thread_state *thread, __u32 *compat)
{
	*compat = 0;
#if KERNEL_STACK_REGISTERS
	if (thread->kernel_stack && !(thread->identity.task_flags & KERNEL_THREAD_FLAGS)) {
		__u64 words[THREAD_CALL_COUNT] = {};
		__u64 from = thread->kernel_stack + KERNEL_STACK_REGISTERS;

		bpf_probe_read_kernel(words, sizeof(words), (void *)(from + 8 * THREAD_CALL_FROM));
		*compat = THREAD_CALL_COMPAT(words) && !THREAD_CALL_EXECUTED(words);
		return (__u32)THREAD_CALL_NUMBER(words);
	}
#endif
	return ~0u;
}
