/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times in which the CPU bandwidth controller held a control group back on a CPU, for --trace runq:
 * how much of a wait they were. The scheduler goes down the tree of groups when the quota of one is
 * used up, and up again when it may run (tg_throttle_down() and tg_unthrottle_up() of
 * kernel/sched/fair.c, since 3.2, with that CPU's run queue locked), a call for each group that
 * this concerns.
 *
 * THROTTLES_SEEN: the plan has both probes, and the layout has what they read. Only with
 * THREAD_SLOTS, because programs must be allowed to jump backwards (5.3).
 */

#if defined(THREAD_SLOTS) && defined(HAVE_rq_cpu) && defined(HAVE_task_struct_sched_task_group) && \
	defined(HAVE_task_struct_prio) && defined(THROTTLE_KPROBE) && defined(UNTHROTTLE_KPROBE)
#define THROTTLES_SEEN 1

#define THROTTLES_MAX 2048 /* groups times CPUs; if there are more, those that were seen last */
#define THROTTLES_KEPT 32  /* past throttles of each, a power of two */
#define PRIORITY_FAIR_LEAST 100 /* MAX_RT_PRIO: below it a quota holds no thread back */

struct throttled_queue {
	__u64 group; /* address of its struct task_group */
	__u64 cpu;
};

struct throttles {
	__u64 began_ns;
	__u32 depth; /* groups held back, this one and those around it; 0: it may run */
	__u32 count; /* ended throttles: past[count % THROTTLES_KEPT] is the next one's */
	struct {
		__u64 began_ns, ended_ns;
	} past[THROTTLES_KEPT];
};

BYTES_OF(throttles);
BPF_TABLE("lru_hash", struct throttled_queue, struct throttles_bytes, ts_throttles, THROTTLES_MAX);
/* A zeroed struct throttles, which does not fit the stack. */
BPF_TABLE("array", __u32, struct throttles_bytes, ts_throttles_none, 1);

static inline void throttle_begins(struct task_group *group, struct rq *rq)
{
	struct throttled_queue queue = {.group = (__u64)group, .cpu = rq_cpu(rq)};
	struct throttles *throttles = (struct throttles *)ts_throttles.lookup(&queue);

	if (!throttles) {
		__u32 zero = 0;
		struct throttles_bytes *none = ts_throttles_none.lookup(&zero);

		if (!none)
			return;
		ts_throttles.insert(&queue, none);
		throttles = (struct throttles *)ts_throttles.lookup(&queue);
		if (!throttles)
			return;
	}
	if (!throttles->depth)
		throttles->began_ns = bpf_ktime_get_ns();
	throttles->depth++;
}

static inline void throttle_ends(struct task_group *group, struct rq *rq)
{
	struct throttled_queue queue = {.group = (__u64)group, .cpu = rq_cpu(rq)};
	struct throttles *throttles = (struct throttles *)ts_throttles.lookup(&queue);
	__u32 at;

	if (!throttles || !throttles->depth) /* the throttle began before the probes were there */
		return;
	throttles->depth--;
	if (throttles->depth)
		return;
	at = throttles->count % THROTTLES_KEPT;
	asm volatile("%0 &= 31" : "+r"(at)); /* bound by a mask, as in latency_add_amount() */
	throttles->past[at].began_ns = throttles->began_ns;
	throttles->past[at].ended_ns = bpf_ktime_get_ns();
	throttles->count++;
}

static inline __u64 at_least_zero(__u64 difference)
{
	return difference & ((difference >> 63) - 1);
}

/* Returns how much of the wait for this CPU from from_ns to now_ns the thread's group was held back
 * here. task: 0 where the probe does not give it. */
static inline __u64 throttled_ns(struct task_struct *task, __u64 from_ns, __u64 now_ns)
{
	struct throttled_queue queue = {.cpu = bpf_get_smp_processor_id()};
	struct throttles *throttles;
	__u64 sum_ns = 0, began_ns;

	if (!task || task_priority(task) < PRIORITY_FAIR_LEAST)
		return 0;
	queue.group = task_group_address(task);
	throttles = (struct throttles *)ts_throttles.lookup(&queue);
	if (!throttles)
		return 0;
	if (throttles->depth) {
		began_ns = throttles->began_ns;
		sum_ns = now_ns - began_ns - at_least_zero(from_ns - began_ns);
	}
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < THROTTLES_KEPT; i++) {
		began_ns = throttles->past[i].began_ns;
		began_ns += at_least_zero(from_ns - began_ns);
		sum_ns += at_least_zero(throttles->past[i].ended_ns - began_ns);
	}
	return sum_ns;
}
#else
static inline __u64 throttled_ns(struct task_struct *task, __u64 from_ns, __u64 now_ns)
{
	return 0;
}
#endif
