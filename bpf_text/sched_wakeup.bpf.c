/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wake-up: when, and by whom. sched_waking, not sched_wakeup: it runs in the waker's own
 * context, also where the wake-up itself is done by another CPU. A waker in an interrupt is the
 * thread it interrupted.
 *
 * Knobs: SCHED_WAKEUP_TYPED, SCHED_WAKEUP_RAW, SCHED_WAKEUP_TRACEPOINT or SCHED_WAKEUP_KPROBE
 * (try_to_wake_up, which also runs for threads that are awake: harmless, because only a wake-up
 * after the switch out counts); KEEP_WAKER where somebody asks who it was.
 */

/* task: 0 where the probe does not give it. */
static inline void thread_woken(struct task_struct *task, __u32 tid)
{
	struct thread_state *thread = thread_find(tid);

#ifdef PID_SPACE
	/* seeded, and not in the map: it is runnable from now on */
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

	thread_woken(task, woken_tid(task));
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_waking)
{
	thread_woken(0, args->pid);
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_KPROBE
int kprobe__try_to_wake_up(struct pt_regs *ctx)
{
	/* of threads that run, too: nothing to make a record from */
	thread_woken(0, task_tid((struct task_struct *)PT_REGS_PARM1(ctx)));
	return 0;
}
#endif
