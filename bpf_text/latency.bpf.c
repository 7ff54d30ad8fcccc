/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the probes of --trace do with a duration: count it in the histogram of its key.
 *
 * Knobs: LATENCY_KINDS, bits 1 << LATENCY_x of the kinds that are asked for; not defined: none, and
 * this fragment is not there. REGISTERS_MARKED: as registers_decode() of src/kernel takes it.
 */

#define TASK_KTHREAD 0x200000u /* PF_KTHREAD */
#define LATENCY_HAS(kind) (LATENCY_KINDS & (1u << (kind)))

BPF_TABLE("hash", struct latency_key, struct latency, ts_latency_one, LATENCY_MAX);
BPF_TABLE("hash", struct latency_key, struct latency, ts_latency_two, LATENCY_MAX);
BPF_TABLE("array", __u32, struct latency_control, ts_latency, 1);

static inline void latency_full_count(void)
{
	__u32 zero = 0;
	struct probe_counters *counters = ts_counters.lookup(&zero);

	if (counters)
		counters->latency_full++;
}

static inline struct latency *latency_find(__u32 turn, struct latency_key *key)
{
	return turn == 1 ? ts_latency_one.lookup(key) : ts_latency_two.lookup(key);
}

/* insert: another program may have come between and made it, and what that counted must stay */
static inline struct latency *latency_make(__u32 turn, struct latency_key *key)
{
	struct latency fresh = {};

	if (turn == 1)
		ts_latency_one.insert(key, &fresh);
	else
		ts_latency_two.insert(key, &fresh);
	return latency_find(turn, key);
}

/* floor(log2), in steps: programs have no loops, and clang's own way is longer */
static inline __u64 latency_bucket(__u64 ns)
{
	__u64 units = ns >> LATENCY_SHIFT, bucket = 0;

	if (units >> 32)
		return LATENCY_BUCKETS - 1;
	if (units >> 16) {
		bucket += 16;
		units >>= 16;
	}
	if (units >> 8) {
		bucket += 8;
		units >>= 8;
	}
	if (units >> 4) {
		bucket += 4;
		units >>= 4;
	}
	if (units >> 2) {
		bucket += 2;
		units >>= 2;
	}
	return bucket + (units >> 1);
}

/* All of the key must be initialised. */
static inline void latency_add_bytes(struct latency_key *key, __u64 ns, __u64 bytes)
{
	__u32 zero = 0;
	struct latency_control *control = ts_latency.lookup(&zero);
	struct latency *latency;
	__u64 bucket = latency_bucket(ns);
	__u32 turn;

	if (!control)
		return;
	turn = control->turn;
	if (!turn)
		return;
	latency = latency_find(turn, key);
	if (!latency)
		latency = latency_make(turn, key);
	if (!latency) {
		latency_full_count();
		return;
	}
	latency->sum_ns += ns;
	latency->bytes += bytes;
	if (ns > latency->max_ns)
		latency->max_ns = ns;
	/* old verifiers know a bound by a mask, which the compiler would leave out */
	asm volatile("%0 &= 31" : "+r"(bucket));
	latency->buckets[bucket]++;
}

/* The same of what has none. */
static inline void latency_add(struct latency_key *key, __u64 ns)
{
	latency_add_bytes(key, ns, 0);
}

/* 0: nobody's, as the thread is outside of the pid namespace that users see. */
static inline int latency_key_fill(struct latency_key *key, struct thread_state *thread, __u32 kind)
{
#ifdef PID_SPACE
	if (!(thread->identity.known & IDENTITY_FULL) || !thread->identity.tid)
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

/* The system call that a thread off its CPU is in, and whether it was made through the 32-bit
 * entry: what registers_decode() makes of the same words. -1: in none, or not known. */
static inline __u32 thread_call(struct thread_state *thread, __u32 *compat)
{
	*compat = 0;
#if KERNEL_STACK_REGISTERS
	if (thread->kernel_stack && !(thread->identity.task_flags & TASK_KTHREAD)) {
		__u64 words[THREAD_CALL_COUNT] = {};
		__u64 from = thread->kernel_stack + KERNEL_STACK_REGISTERS;

		bpf_probe_read_kernel(words, sizeof(words), (void *)(from + 8 * THREAD_CALL_FROM));
		*compat = THREAD_CALL_COMPAT(words);
		return (__u32)THREAD_CALL_NUMBER(words);
	}
#endif
	return ~0u;
}
