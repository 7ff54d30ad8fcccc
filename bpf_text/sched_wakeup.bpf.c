/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wake-up: when, and by whom. sched_waking, not sched_wakeup: it runs in the waker's own
 * context, also where the wake-up itself is done by another CPU. A waker in an interrupt is the
 * thread it interrupted.
 *
 * Knobs: SCHED_WAKEUP_TYPED, SCHED_WAKEUP_RAW, SCHED_WAKEUP_TRACEPOINT or SCHED_WAKEUP_KPROBE
 * (try_to_wake_up, which also runs for threads that are awake: harmless, because only a wake-up
 * after the switch out counts).
 */

static inline void thread_woken(__u32 tid)
{
	struct thread_state *thread = thread_find(tid);

	if (!thread)
		return;
	thread->wake.waker_tid = bpf_get_current_pid_tgid();
	thread->wake.wake_ns = bpf_ktime_get_ns();
	ORDERED();
	thread_list(thread, tid);
}

#ifdef SCHED_WAKEUP_TYPED
RAW_TRACEPOINT_PROBE(sched_waking)
{
	thread_woken(task_tid_typed((struct task_struct *)ctx->args[0]));
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_RAW
RAW_TRACEPOINT_PROBE(sched_waking)
{
	thread_woken(task_tid((struct task_struct *)ctx->args[0]));
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_waking)
{
	thread_woken(args->pid);
	return 0;
}
#endif

#ifdef SCHED_WAKEUP_KPROBE
int kprobe__try_to_wake_up(struct pt_regs *ctx)
{
	thread_woken(task_tid((struct task_struct *)PT_REGS_PARM1(ctx)));
	return 0;
}
#endif
