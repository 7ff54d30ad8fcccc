/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread's name changes: by exec, by prctl(PR_SET_NAME), by a write to /proc/TID/comm.
 *
 * Knobs: THREAD_RENAME_RAW, THREAD_RENAME_TRACEPOINT or THREAD_RENAME_KPROBE (__set_task_comm).
 */

static inline void thread_renamed(__u32 tid, const char *from)
{
	struct thread_state *thread = thread_find(tid);
	char comm[THREAD_COMM_SIZE] = {};

	if (!thread)
		return;
#ifdef EVENTS_EXEC
	rename_note(thread);
#endif
	bpf_probe_read_kernel(comm, sizeof(comm), from);
	/* the kernel gives a name of any length and cuts it after the tracepoint */
	comm[THREAD_COMM_SIZE - 1] = 0;
	__builtin_memcpy(thread->identity.comm, comm, sizeof(comm));
	thread_list(thread); /* the thread may sleep, named by another one */
}

#ifdef THREAD_RENAME_RAW
RAW_TRACEPOINT_PROBE(task_rename)
{
	thread_renamed(task_tid((struct task_struct *)ctx->args[0]), (const char *)ctx->args[1]);
	return 0;
}
#endif

#ifdef THREAD_RENAME_TRACEPOINT
TRACEPOINT_PROBE(task, task_rename)
{
	thread_renamed(args->pid, args->newcomm);
	return 0;
}
#endif

#ifdef THREAD_RENAME_KPROBE
int kprobe____set_task_comm(struct pt_regs *ctx)
{
	thread_renamed(task_tid((struct task_struct *)PT_REGS_PARM1(ctx)),
		       (const char *)PT_REGS_PARM2(ctx));
	return 0;
}
#endif
