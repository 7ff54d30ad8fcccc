/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of work, measured by the switches that begin and end them; only where LATENCY_WORK is
 * among LATENCY_KINDS, and the record's array has slots (THREAD_SLOTS).
 */

#define WORK_MEASURED 1

BPF_F_TABLE("array", __u32, struct work_slot, ts_work, THREADS_MAX, MAPPED_FLAG);

/* Returns the slot of a thread whose idle call is known, else 0. */
static inline struct work_slot *work_find(struct thread_state *thread)
{
	__u64 begun_boot_ns = thread->identity.start_boot_ns;
	__u32 key = thread->key;
	struct work_slot *work = ts_work.lookup(&key);

	return work && begun_boot_ns && work->begun_boot_ns == begun_boot_ns ? work : 0;
}

/* Reports a slow piece, with what it consisted of. */
static inline void work_slow(struct latency_key *key, struct work_parts *parts, __u64 now_ns,
			     __u64 ns)
{
#ifdef SLOWER_NS
	if (ns >= SLOWER_NS)
		event_report(key, now_ns, ns, parts);
#endif
}

/* Adds a piece to the sums of its bucket. */
static inline void work_count(struct work_slot *work, struct thread_state *thread, __u64 now_ns)
{
	__u64 ns = now_ns - work->began_ns;
	struct latency_key key = {};
	struct work_parts parts;
	__u64 totals[WORK_PARTS] = {thread->sched.cpu_ns, thread->sched.runq_ns,
				    thread->sched.disk_ns, thread->sched.sleep_ns};
	struct latency *latency;

	if (!latency_key_fill(&key, thread, LATENCY_WORK))
		return;
	key.what[WORK_CALL] = work->call;
	key.what[WORK_BUCKET] = latency_bucket(ns);
	split_parts(work->totals, totals, parts.ns);
	work_slow(&key, &parts, now_ns, ns); /* there may be no histograms */
	latency = latency_of(&key);
	if (!latency)
		return;
	latency->amount += work->idle_ns;
	split_add(latency, ns, parts.ns);
}

/* After a thread has fallen asleep, and its totals have the time until then. In the idle call that
 * ends a piece. A sleep in D is in a lock or a page fault of the call, and no idle one. */
static inline void work_leaves(struct thread_state *thread, __u64 now_ns)
{
	struct work_slot *work = work_find(thread);
	/* the number of the call follows its first argument, on x86-64 and arm64 */
	__u64 words[2] = {};

	if (!work)
		return;
	if (!(thread->sched.state & 1)) /* TASK_INTERRUPTIBLE */
		return;
#if KERNEL_STACK_REGISTERS
	bpf_probe_read_kernel(words, sizeof(words),
			      (void *)(thread->kernel_stack + KERNEL_STACK_REGISTERS +
				       8 * THREAD_FIRST_ARGUMENT));
#endif
	if ((__u32)words[1] != work->call || (words[0] & work->argument_mask) != work->argument)
		return;
	work->idle = 1;
	if (work->began_ns)
		work_count(work, thread, now_ns);
	work->began_ns = 0;
}

/* Before a thread that slept is noted as on its CPU: from the idle call a piece begins, with the
 * wake-up. Also called where the thread came unseen, as it leaves: the wake-up is known. */
static inline void work_arrives(struct thread_state *thread, __u64 now_ns)
{
	struct work_slot *work = work_find(thread);
	__u64 out_ns = thread->sched.out_ns, end_ns;

	if (!work || !work->idle)
		return;
	work->idle = 0;
	if (thread->sched.on_cpu) /* the switch out was missed */
		return;
	end_ns = sleep_end_ns(thread, now_ns);
	work->began_ns = end_ns;
	work->idle_ns = end_ns - out_ns;
	work->totals[WORK_CPU] = thread->sched.cpu_ns;
	work->totals[WORK_RUNQ] = thread->sched.runq_ns;
	work->totals[WORK_DISK] = thread->sched.disk_ns;
	work->totals[WORK_SLEEP] = thread->sched.sleep_ns + work->idle_ns;
}
