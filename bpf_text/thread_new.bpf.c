/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A new thread, before its first wake-up: its record begins as runnable, and whatever an earlier
 * thread of the same tid left is gone. The tracepoint gives no task; the rest is filled in at the
 * first switch out.
 *
 * Knobs: THREAD_NEW_RAW, THREAD_NEW_TRACEPOINT or THREAD_NEW_KPROBE (wake_up_new_task).
 */

#define THREAD_CLONE_FLAG 0x10000u /* CLONE_THREAD */

#if defined(THREAD_NEW_RAW) || defined(THREAD_NEW_KPROBE)
static inline void thread_begins(struct task_struct *task)
{
	__u32 tid = task_tid(task);
	struct thread_state *thread = thread_make(tid, bpf_ktime_get_ns());

	if (thread)
		identity_read(thread, task, tid);
	thread_began(task_tgid(task) == tid);
}
#endif

#ifdef THREAD_NEW_RAW
RAW_TRACEPOINT_PROBE(task_newtask)
{
	thread_begins((struct task_struct *)ctx->args[0]);
	return 0;
}
#endif

#ifdef THREAD_NEW_TRACEPOINT
TRACEPOINT_PROBE(task, task_newtask)
{
	struct task_struct *parent = (struct task_struct *)bpf_get_current_task();
	__u32 parent_tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 tgid = args->clone_flags & THREAD_CLONE_FLAG ? parent_tgid : args->pid;
	char comm[THREAD_COMM_SIZE] = {};
	struct thread_state *thread;

	thread_began(!(args->clone_flags & THREAD_CLONE_FLAG));
	thread = thread_make(args->pid, bpf_ktime_get_ns());
	if (!thread)
		return 0;
	bpf_probe_read_kernel(comm, sizeof(comm), args->comm);
	__builtin_memcpy(thread->identity.comm, comm, sizeof(comm));
	thread->identity.tgid = tgid;
	thread->identity.parent_tgid = parent_tgid;
	thread->identity.uid = task_uid(parent);
	thread->identity.known = IDENTITY_NAME;
	return 0;
}
#endif

#ifdef THREAD_NEW_KPROBE
int kprobe__wake_up_new_task(struct pt_regs *ctx)
{
	thread_begins((struct task_struct *)PT_REGS_PARM1(ctx));
	return 0;
}
#endif
