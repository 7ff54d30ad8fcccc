/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread executed a program. Its user may be another now. If it was not its process's first
 * thread, it has taken over the tid of that thread (de_thread() in fs/exec.c), and its own old tid
 * is gone.
 *
 * Knobs: THREAD_EXEC_RAW or THREAD_EXEC_TRACEPOINT; EVENTS_EXEC (exec_event.bpf.c); KEEP_PROGRAM:
 * the record shows that the program is another one.
 */

static inline void thread_executed(__u32 old_tid)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread_state *thread;

	process_executed(task);
	if (old_tid != tid) {
		__u64 now_ns = bpf_ktime_get_ns();

		thread_moved(old_tid, tid, task, now_ns);
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
#ifdef EVENTS_EXEC
	__u64 before[THREAD_COMM_SIZE / 8];

	__builtin_memcpy(before, thread->identity.comm, sizeof(before));
	identity_read(thread, task, tid);
	exec_describe(thread, before);
#else
	identity_read(thread, task, tid);
#endif
#ifdef KEEP_PROGRAM
	thread->identity.known = IDENTITY_NAME | IDENTITY_FULL |
				 (__u32)(bpf_ktime_get_ns() >> 10) << IDENTITY_PROGRAM_SHIFT;
#endif
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
