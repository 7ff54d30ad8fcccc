/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Durations of one thread, split by its exact totals: pieces of work, and calls of functions that a
 * probe of the user's own measures. A histogram has the duration's bucket in its key, and what is
 * added up of that bucket (struct work_sums) in place of its own buckets. Comes after latency.bpf.c
 * and work.h.
 */

/* Reads what a thread on its CPU has done until now. 0: it is not known, or the thread was switched
 * meanwhile. */
static inline int split_totals(struct thread_state *thread, __u64 now_ns, __u64 *totals)
{
	__u64 in_ns = thread->sched.in_ns;

	if (!thread->sched.on_cpu || now_ns < in_ns)
		return 0;
	ORDERED();
	totals[WORK_CPU] = thread->sched.cpu_ns + now_ns - in_ns;
	totals[WORK_RUNQ] = thread->sched.runq_ns;
	totals[WORK_DISK] = thread->sched.disk_ns;
	totals[WORK_SLEEP] = thread->sched.sleep_ns;
	ORDERED();
	return thread->sched.in_ns == in_ns;
}

/* Writes what the thread did between two readings of its totals. Returns their sum. */
static inline __u64 split_parts(const __u64 *before, const __u64 *after, __u64 *parts)
{
	parts[WORK_CPU] = after[WORK_CPU] - before[WORK_CPU];
	parts[WORK_RUNQ] = after[WORK_RUNQ] - before[WORK_RUNQ];
	parts[WORK_DISK] = after[WORK_DISK] - before[WORK_DISK];
	parts[WORK_SLEEP] = after[WORK_SLEEP] - before[WORK_SLEEP];
	return parts[WORK_CPU] + parts[WORK_RUNQ] + parts[WORK_DISK] + parts[WORK_SLEEP];
}

/* Adds a duration to the sums of its bucket; parts: what the thread did in it, or NULL: that is not
 * known. Additions are atomic where an interrupt's may come between. */
static inline void split_add(struct latency *latency, __u64 ns, const __u64 *parts)
{
	struct work_sums *sums = (struct work_sums *)latency->buckets;

	__sync_fetch_and_add(&latency->sum_ns, ns);
	if (ns > latency->max_ns)
		latency->max_ns = ns;
	__sync_fetch_and_add(&sums->count, 1);
	if (!parts)
		return;
	__sync_fetch_and_add(&sums->parts_ns[WORK_CPU], parts[WORK_CPU]);
	__sync_fetch_and_add(&sums->parts_ns[WORK_RUNQ], parts[WORK_RUNQ]);
	__sync_fetch_and_add(&sums->parts_ns[WORK_DISK], parts[WORK_DISK]);
	__sync_fetch_and_add(&sums->parts_ns[WORK_SLEEP], parts[WORK_SLEEP]);
}
