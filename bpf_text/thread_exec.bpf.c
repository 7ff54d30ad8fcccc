/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread executed a program: its user may be another now, and where it was not its process's
 * first thread it has taken over that one's tid (de_thread() in fs/exec.c), while its own old tid
 * is gone.
 *
 * Knobs: THREAD_EXEC_RAW or THREAD_EXEC_TRACEPOINT.
 */

static inline void thread_executed(__u32 old_tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread_state *thread;

	process_executed(task);
	if (old_tid != tid) {
		__u64 now_ns = bpf_ktime_get_ns();

		thread_moved(thread_find(old_tid), task, now_ns);
		thread_forget(old_tid);
		thread = thread_make(tid, now_ns);
		if (!thread)
			return;
		thread->sched.cpu = bpf_get_smp_processor_id();
		thread->sched.on_cpu = 1;
	} else {
		thread = thread_find(tid);
		if (!thread)
			return;
	}
	identity_read(thread, task, tid);
}

#ifdef THREAD_EXEC_RAW
RAW_TRACEPOINT_PROBE(sched_process_exec)
{
	thread_executed(ctx->args[1]);
	return 0;
}
#endif

#ifdef THREAD_EXEC_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_process_exec)
{
	thread_executed(args->old_pid);
	return 0;
}
#endif
