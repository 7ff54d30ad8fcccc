/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wake-up: its time, and its waker. The event is sched_waking, not sched_wakeup: it runs in the
 * waker's own context, also where the wake-up itself is done by another CPU. A waker in an
 * interrupt is the thread it interrupted.
 *
 * Knobs: SCHED_WAKEUP_TYPED, SCHED_WAKEUP_RAW, SCHED_WAKEUP_TRACEPOINT or SCHED_WAKEUP_KPROBE
 * (try_to_wake_up, which also runs for threads that are awake: harmless, because only a wake-up
 * after the switch out counts); KEEP_WAKER where the waker is wanted; TELL_WAKES where waits that a
 * scan has seen are reported when they end (wakes.h), by the raw tracepoint alone.
 */

#if defined(TELL_WAKES) && defined(THREAD_SLOTS) && \
	(defined(SCHED_WAKEUP_TYPED) || defined(SCHED_WAKEUP_RAW))
BYTES_OF(wake_ring);
BPF_F_TABLE("array", __u32, struct wake_ring_bytes, ts_wakes, CPUS_MAX, MAPPED_FLAG);

/* ctx: the raw tracepoint's arguments, which lie on the stack that the waker's code runs on. */
static inline void wake_report(void *ctx, struct thread_state *thread)
{
	__u32 cpu = bpf_get_smp_processor_id(), tid = bpf_get_current_pid_tgid();
	struct wake_ring *ring = (struct wake_ring *)ts_wakes.lookup(&cpu);
	struct thread_state *waker;
	struct wake_row *row;
	__u64 slot, at, entry = 0;

	if (!ring || thread->sched.on_cpu || thread->sched.out_ns >= ring->before_ns)
		return;
	slot = at = ring->count;
	__sync_fetch_and_add(&ring->count, 1);
	ORDERED();
	/* an interrupt's wake-up came between: see event_take() */
	if (ring->count != slot + 1)
		return;
	asm volatile("%0 &= %1" : "+r"(at) : "i"(WAKE_ROWS_MAX - 1));
	row = &ring->rows[at];
	row->begun = slot + 1;
	ORDERED();
	row->slept_ns = thread->sched.out_ns;
	row->wake_ns = thread->wake.wake_ns;
	row->context = (__u64)ctx;
	row->waker_stack = row->entry = 0;
	row->tid = thread->identity.tid;
	row->waker_tid = 0;
	row->flags = tid ? 0 : WAKE_BY_IDLE;
	waker = tid ? thread_find(tid) : 0;
	if (waker) {
		row->waker_stack = waker->kernel_stack;
		row->waker_tid = waker->identity.tid;
#if KERNEL_STACK_REGISTERS
		bpf_probe_read_kernel(
			&entry, sizeof(entry),
			(void *)(waker->kernel_stack + KERNEL_STACK_REGISTERS - sizeof(entry)));
		row->entry = entry;
#endif
	}
	ORDERED();
	row->done = slot + 1;
}
#else
static inline void wake_report(void *ctx, struct thread_state *thread)
{
}
#endif

/* task: 0 where the probe does not give it. ctx: the probe's. */
static inline void thread_woken(void *ctx, struct task_struct *task, __u32 tid)
{
	struct thread_state *thread = thread_find(tid);

#ifdef PID_NAMESPACE
	/* a seeded thread that is not in the map: it is runnable from now on */
	if (!thread && task) {
		thread = thread_make(tid, bpf_ktime_get_ns());
		if (thread)
			identity_read(thread, task, tid);
	}
#endif
	if (!thread)
		return;
#ifdef KEEP_WAKER
	thread->wake.waker_tid = bpf_get_current_pid_tgid();
#endif
	thread->wake.wake_ns = bpf_ktime_get_ns();
	ORDERED();
	thread_list(thread);
	wake_report(ctx, thread);
}

#ifdef SCHED_WAKEUP_TYPED
#define SCHED_WAKEUP_RAW 1
#define woken_tid(task) task_tid_typed(task)
#else
#define woken_tid(task) task_tid(task)
#endif

#ifdef SCHED_WAKEUP_RAW
RAW_TRACEPOINT_PROBE(sched_waking)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];

	thread_woken(ctx, task, woken_tid(task));
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_waking)
{
	thread_woken(args, 0, args->pid);
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_KPROBE
int kprobe__try_to_wake_up(struct pt_regs *ctx)
{
	/* called for threads that run, too: task 0, so that no record is made */
	thread_woken(ctx, 0, task_tid((struct task_struct *)PT_REGS_PARM1(ctx)));
	return 0;
}
#endif
