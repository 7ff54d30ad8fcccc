/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler switch: closes what the leaving thread did, opens what the arriving one does.
 *
 * Knobs: SCHED_SWITCH_TYPED, SCHED_SWITCH_RAW, SCHED_SWITCH_TRACEPOINT, SCHED_SWITCH_KPROBE or
 * SCHED_SWITCH_KPROBE_SECOND. A raw tracepoint gives both tasks and whether the leaving one was
 * preempted. The tracepoint gives the arriving tid only, and the kprobe runs after the switch; both
 * recognise a preemption by task->nvcsw, which __schedule() counts up before either of them for
 * every switch that is not one. LATENCY_KINDS (latency.bpf.c): the waits that end here are measured
 * one by one. KEEP_REGISTERS, KEEP_TOTALS: what a record keeps if it is needed. KEEP_STACKS: in the
 * capture window, the time right before a scan, a switch out has the kernel write a perf sample
 * with the leaving thread's stacks. Not by the kprobe: it runs as the arriving thread.
 */

#ifdef SCHED_SWITCH_KPROBE_SECOND
#define SCHED_SWITCH_KPROBE
#define SWITCH_PREV PT_REGS_PARM2 /* after a run queue, before 3.19 */
#else
#define SWITCH_PREV PT_REGS_PARM1
#endif

#define STATE_DEAD_BITS (0x10u | 0x20u) /* exit_state: EXIT_DEAD, EXIT_ZOMBIE */
#define EXIT_ZOMBIE_BIT 0x20u
#define STATE_DISK_BIT 0x2u	/* TASK_UNINTERRUPTIBLE */
#define STATE_NOLOAD_BIT 0x400u /* TASK_NOLOAD: an idle kernel thread, which is no D */

/* Registers stay where they are, at the end of the kernel stack, until the thread runs again. So
 * where they can be requested (REGISTERS_REQUESTED, registers.bpf.c) a switch keeps them only while
 * a sampler is at work: those of threads that leave, and of threads that come back before the
 * sampler has requested them. */
#if defined(KEEP_REGISTERS) && defined(REGISTERS_REQUESTED)
#define REGISTERS_AT_TIMES 1
#else
#define REGISTERS_AT_TIMES 0
#endif
#ifdef KEEP_REGISTERS
#define REGISTERS_KEPT 1
#else
#define REGISTERS_KEPT 0
#endif

/* Returns ts_sampling while a sampler is at work, when a switch keeps something for it; else 0.
 * Scan times lie in the time in which registers are kept. */
static inline struct sampling *sampler_at_work(__u64 now_ns)
{
#ifdef THREAD_SLOTS
	__u32 zero = 0;
	struct sampling *sampling = ts_sampling.lookup(&zero);

	if (!sampling ||
	    (REGISTERS_AT_TIMES ? now_ns - sampling->registers_from_ns >= REGISTERS_OPEN_NS &&
					  now_ns >= sampling->registers_until_ns
				: now_ns - sampling->scan_time_ns >= SCAN_TIME_OPEN_NS))
		return 0;
	return sampling;
#else
	return 0;
#endif
}

#ifdef THREAD_SLOTS
BYTES_OF(scan_time_ring);
BPF_F_TABLE("array", __u32, struct scan_time_ring_bytes, ts_scan_time, CPUS_MAX, MAPPED_FLAG);
#endif

/* Keeps a row of the thread, if this is its first switch after the scan time. before_ns: time of
 * its switch before. */
static inline void scan_time_keep(const struct thread_state *thread,
				  const struct sampling *sampling, __u64 before_ns, __u64 now_ns)
{
#ifdef THREAD_SLOTS
	__u32 cpu = bpf_get_smp_processor_id();
	struct scan_time_ring *ring;
	struct scan_time_row *row;
	__u64 at;

	if (now_ns - sampling->scan_time_ns >= SCAN_TIME_OPEN_NS ||
	    before_ns >= sampling->scan_time_ns)
		return;
	ring = (struct scan_time_ring *)ts_scan_time.lookup(&cpu);
	if (!ring)
		return;
	at = ring->count;
	if (at < SCAN_TIME_ROWS_MAX) {
		/* bound by a mask, as in thread_list() */
		asm volatile("%0 &= 127" : "+r"(at));
		row = &ring->rows[at];
		__builtin_memcpy(&row->wake, &thread->wake, sizeof(row->wake));
		__builtin_memcpy(&row->sched, &thread->sched, sizeof(row->sched));
		row->call_ns = thread->call_ns;
		row->call = thread->call;
		row->key = thread->key;
	}
	ORDERED();
	ring->count++;
#endif
}

#if defined(KEEP_STACKS) && !defined(SCHED_SWITCH_KPROBE)
BPF_PERF_OUTPUT(ts_kept);
BPF_TABLE("array", __u32, struct capture_window, ts_window, 1);

static inline void stacks_keep(void *ctx, __u32 tid, __u64 sequence, __u64 now_ns)
{
	struct kept_stack_id id = {};
	__u32 zero = 0;
	struct capture_window *window = ts_window.lookup(&zero);

	if (!window || now_ns < window->from_ns || now_ns >= window->until_ns)
		return;
	id.sequence = sequence;
	id.tid = tid;
	ts_kept.perf_submit(ctx, &id, sizeof(id));
}
#else
static inline void stacks_keep(void *ctx, __u32 tid, __u64 sequence, __u64 now_ns)
{
}
#endif

static inline void registers_keep(struct thread_state *thread, __u64 sequence)
{
	registers_read(thread->sched.registers, thread->kernel_stack);
	thread->sched.registers_sequence = sequence;
}

/* Adds the time off the CPU that ends now to the totals: asleep, then runnable. */
static inline void waits_count(struct thread_state *thread, __u64 now_ns)
{
#ifdef KEEP_TOTALS
	__u64 out_ns = thread->sched.out_ns;
	__u32 state = thread->sched.state;
	__u64 asleep_ns = 0, wake_ns = thread->wake.wake_ns;

#ifdef THREAD_SLOTS
	/* The switch out was missed: of any thread; of one that ran when tsnap started, and was
	 * woken since. Totals that lack time are not reported, false ones would be. Kernels before
	 * 5.5 are spared this, as in record_stays(). */
	if (thread->sched.in_ns > out_ns ||
	    (!state && wake_ns > out_ns && !(thread->sched.known & SCHED_SWITCHED_OUT)))
		return;
#endif
	if (state) {
#ifdef THREAD_SLOTS
		asleep_ns = sleep_end_ns(thread, now_ns) - out_ns;
#else
		/* sleep_end_ns() without its limit: kernels before 5.5 hide no wake-up, and this is
		 * all that their verifiers take */
		if (wake_ns > out_ns && wake_ns < now_ns)
			asleep_ns = wake_ns - out_ns;
		else if (wake_ns < thread->sched.in_ns)
			asleep_ns = now_ns - out_ns;
#endif
		/* the barrier keeps the compiler from adding to an address that it chooses: 4.9
		 * does not take one that was on the stack meanwhile */
		if ((state & (STATE_DISK_BIT | STATE_NOLOAD_BIT)) == STATE_DISK_BIT) {
			thread->sched.disk_ns += asleep_ns;
			ORDERED();
		} else {
			thread->sched.sleep_ns += asleep_ns;
		}
	}
	thread->sched.runq_ns += now_ns - out_ns - asleep_ns;
#endif
}

/* sampling: as sampler_at_work() returns it. */
static inline void switch_in(struct thread_state *thread, const struct sampling *sampling,
			     __u64 now_ns)
{
	__u64 sequence = thread->sched.sequence_done + 1;

	thread->sched.sequence_begun = sequence;
	ORDERED();
	if (sampling && thread->sched.known & SCHED_SWITCHED_OUT) {
		if (REGISTERS_AT_TIMES && thread->sched.registers_sequence != sequence - 1)
			registers_keep(thread, sequence - 1);
		scan_time_keep(thread, sampling, thread->sched.out_ns, now_ns);
	}
	waits_count(thread, now_ns);
	thread->sched.in_ns = now_ns;
	thread->sched.cpu = bpf_get_smp_processor_id();
	thread->sched.on_cpu = 1;
	ORDERED();
	thread->sched.sequence_done = sequence;
}

/* ctx: the probe's. */
static inline void switch_out(void *ctx, struct thread_state *thread, __u32 state, int preempted,
			      __u64 now_ns)
{
	struct sampling *sampling = sampler_at_work(now_ns);
	int unseen = !thread->sched.on_cpu;
	__u64 sequence;

	/* The thread came unseen (a new record, or the kernel ran no program then): it counts as
	 * waiting until now. No time is lost, only attributed wrongly. */
#ifdef WORK_MEASURED
	if (unseen && thread->sched.state)
		work_arrives(thread, now_ns);
#endif
	if (unseen)
		switch_in(thread, 0, now_ns);
	sequence = thread->sched.sequence_done + 1;
	thread->sched.sequence_begun = sequence;
	ORDERED();
#ifdef KEEP_TOTALS
	thread->sched.cpu_ns += now_ns - thread->sched.in_ns;
	if (preempted) {
		thread->sched.involuntary_count++;
		ORDERED(); /* needed by the verifier of 4.9: see waits_count() */
	} else {
		thread->sched.voluntary_count++;
	}
#endif
	thread->sched.out_ns = now_ns;
	thread->sched.state = preempted ? 0 : state;
	thread->sched.on_cpu = 0;
	thread->sched.known = SCHED_SWITCHED_OUT;
	if (REGISTERS_AT_TIMES ? sampling != 0 : REGISTERS_KEPT)
		registers_keep(thread, sequence);
	ORDERED();
	thread->sched.sequence_done = sequence;
#ifdef WORK_MEASURED
	if (thread->sched.state)
		work_leaves(thread, now_ns);
#endif
	if (unseen) /* unseen wake-up: it would be reported as still in the sleep before */
		thread_list(thread);
	if (sampling)
		scan_time_keep(thread, sampling, thread->sched.in_ns, now_ns);
	/* the capture window lies in the time in which registers are kept, if that is not always */
	if (!REGISTERS_AT_TIMES || sampling)
		stacks_keep(ctx, thread->sched.tid, sequence, now_ns);
}

#ifdef LATENCY_KINDS
/* task: 0 where it is not at hand. */
static inline void runq_add(struct thread_state *thread, struct task_struct *task, __u64 wait_ns,
			    __u64 end_ns)
{
#if LATENCY_HAS(LATENCY_RUNQ)
	/* called before there is a key, as in offcpu_add() */
	__u64 quota_ns = throttled_ns(task, end_ns - wait_ns, end_ns);
	struct latency_key key = {};

	if (!latency_key_fill(&key, thread, LATENCY_RUNQ))
		return;
	latency_add_amount(&key, wait_ns, quota_ns);
	slow_event(&key, thread, end_ns, wait_ns);
#endif
}

static inline void offcpu_add(struct thread_state *thread, __u64 asleep_ns, __u64 end_ns)
{
#if LATENCY_HAS(LATENCY_OFFCPU)
	/* called before there is a key, to use its part of the small stack */
	__u32 compat, call = thread_call(thread, &compat);
	struct latency_key key = {};

	if (!latency_key_fill(&key, thread, LATENCY_OFFCPU))
		return;
	key.what[OFFCPU_STATE] = thread->sched.state;
	key.what[OFFCPU_SYSCALL] = call;
	key.what[OFFCPU_COMPAT] = compat;
	latency_add(&key, asleep_ns);
	slow_event(&key, thread, end_ns, asleep_ns);
#endif
}

/* Measures the waits that end now; switch_in() adds them to the totals next. A sleep that began
 * before the thread was first seen is not measured: nobody knows how long it was. */
static inline void waits_end(struct thread_state *thread, struct task_struct *task, __u64 now_ns)
{
	__u64 out_ns = thread->sched.out_ns, wake_ns = thread->wake.wake_ns, runq_ns = out_ns;
	int slept;

	if (thread->sched.on_cpu) /* the switch out was missed */
		return;
	if (thread->sched.state) {
		slept = thread->sched.known & SCHED_SWITCHED_OUT;
#ifdef THREAD_SLOTS
		runq_ns = sleep_end_ns(thread, now_ns);
#else /* see waits_count() */
		if (wake_ns > out_ns && wake_ns < now_ns)
			runq_ns = wake_ns;
		else if (wake_ns < thread->sched.in_ns)
			runq_ns = now_ns; /* the wake-up was missed: a wait of unknown length */
#endif
		if (runq_ns > out_ns && slept)
			offcpu_add(thread, runq_ns - out_ns, runq_ns);
		if (runq_ns == out_ns && !slept)
			return;
	}
	runq_add(thread, task, now_ns - runq_ns, now_ns);
	/* the code below reads the record again: values that are kept meanwhile fill the stack */
	ORDERED();
}
#endif

/* Returns the bits of exit_state if a dead thread leaves for the last time, else 0. */
static inline __u32 dead_bits(struct task_struct *task, __u32 state, int preempted)
{
	/* only rare states are worth the look */
	return state & ~0x3u && !preempted ? task_exit_state(task) & STATE_DEAD_BITS : 0;
}

/* Prepares a leaving thread's record for the switch out. Returns 0 if it has no record any more: a
 * zombie keeps its record until it was waited for; any other record goes with the thread's last
 * switch and must not come back. */
static inline int record_stays(struct thread_state *thread, struct task_struct *task, __u32 tid,
			       __u32 dead, __u64 now_ns)
{
#if defined(LATENCY_KINDS) && defined(THREAD_SLOTS)
	/* A thread that came unseen has a wait that ended before now, at a time that is not known.
	 * The totals have it so, too. Kernels before 5.5, which hide no switch, are spared this
	 * way: their verifiers take a limited number of ways through a program. */
	if (thread->sched.known)
		waits_end(thread, 0, now_ns);
#endif
	if (!dead)
		return 1;
#ifdef PROCESS_TOTALS
	thread_ended(thread, task, tid, now_ns);
#endif
	if (!(dead & EXIT_ZOMBIE_BIT)) {
		thread_forget(tid);
		return 0;
	}
	thread->sched.exit_state = dead;
	return 1;
}

/* Makes the record of a leaving thread that had none. NULL: it gets none. */
static inline struct thread_state *record_begin(struct task_struct *task, __u32 tid, __u32 dead,
						__u64 now_ns)
{
	struct thread_state *thread;

#ifdef PROCESS_TOTALS
	if (dead)
		unrecorded_ended(task, tid);
#endif
	if (dead && !(dead & EXIT_ZOMBIE_BIT))
		return 0;
	thread = thread_make(tid, now_ns);
	if (thread)
		thread->sched.cpu = bpf_get_smp_processor_id();
	return thread;
}

static inline void thread_leaves(void *ctx, struct task_struct *task, __u32 tid, __u32 state,
				 int preempted, __u64 now_ns)
{
	struct thread_state *thread = thread_find(tid);
	__u32 dead = dead_bits(task, state, preempted);

	if (thread) {
		if (!record_stays(thread, task, tid, dead, now_ns))
			return;
	} else {
		thread = record_begin(task, tid, dead, now_ns);
		if (!thread)
			return;
	}
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, task, tid);
	switch_out(ctx, thread, state, preempted, now_ns);
}

/* task: 0 where the probe does not give it; the identity is then read when the thread leaves. */
static inline void thread_arrives(struct task_struct *task, __u32 tid, __u64 now_ns)
{
	struct thread_state *thread = thread_find(tid);

	if (!thread)
		thread = thread_make(tid, now_ns);
	if (!thread)
		return;
	if (task && !(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, task, tid);
#ifdef LATENCY_KINDS
	if (thread->sched.out_ns != now_ns) /* else the record was just made */
		waits_end(thread, task, now_ns);
	ways_meet();
#endif
#ifdef WORK_MEASURED
	if (thread->sched.state)
		work_arrives(thread, now_ns);
#endif
	switch_in(thread, sampler_at_work(now_ns), now_ns);
	/* the wake-up was not seen, or came on the way to sleep */
	if (thread->sched.state && thread->wake.wake_ns < thread->sched.out_ns)
		thread_list(thread);
}

/* True if the leaving thread was preempted, by the kernel's own count of voluntary switches. */
static inline int count_means_preempted(struct task_struct *task, __u32 tid)
{
	struct thread_state *thread = thread_find(tid);
	__u64 count = task_voluntary_count(task), before;

	if (!thread)
		return 0;
	before = thread->sched.kernel_voluntary;
	thread->sched.kernel_voluntary = count;
	return before == count;
}

#ifdef SCHED_SWITCH_TYPED
#define SCHED_SWITCH_RAW 1
#define switch_state(task) task_state_typed(task)
#define switch_tid(task) task_tid_typed(task)
#else
#define switch_state(task) task_state(task)
#define switch_tid(task) task_tid(task)
#endif

#ifdef SCHED_SWITCH_RAW
RAW_TRACEPOINT_PROBE(sched_switch)
{
	struct task_struct *prev = (struct task_struct *)ctx->args[1];
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 tid = switch_tid(prev);

	if (tid) {
		__u32 state = switch_state(prev);

		thread_leaves(ctx, prev, tid, state, ctx->args[0] || !state, now_ns);
	}
	ways_meet();
	tid = switch_tid(next);
	if (tid)
		thread_arrives(next, tid, now_ns);
	return 0;
}
#endif

#ifdef SCHED_SWITCH_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_switch)
{
	struct task_struct *prev = (struct task_struct *)bpf_get_current_task();
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 tid = bpf_get_current_pid_tgid();

	if (tid)
		thread_leaves(args, prev, tid, task_state(prev), count_means_preempted(prev, tid),
			      now_ns);
	ways_meet();
	tid = args->next_pid;
	if (tid)
		thread_arrives(0, tid, now_ns);
	return 0;
}
#endif

#ifdef SCHED_SWITCH_KPROBE
int kprobe__finish_task_switch(struct pt_regs *ctx)
{
	struct task_struct *prev = (struct task_struct *)SWITCH_PREV(ctx);
	struct task_struct *next = (struct task_struct *)bpf_get_current_task();
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 tid = task_tid(prev);

	if (tid)
		thread_leaves(ctx, prev, tid, task_state(prev), count_means_preempted(prev, tid),
			      now_ns);
	ways_meet();
	tid = bpf_get_current_pid_tgid();
	if (tid)
		thread_arrives(next, tid, now_ns);
	return 0;
}
#endif
