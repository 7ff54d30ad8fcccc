/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A zombie was waited for: its record goes. Other threads' records go with their last switch. The
 * tid may be another thread's already: the record must be a zombie's and, where there is a task to
 * read it from, have its start time. After an exec by another thread the new leader keeps the old
 * leader's start time.
 *
 * Knobs: THREAD_EXIT_RAW or THREAD_EXIT_TRACEPOINT.
 */

#ifdef THREAD_EXIT_RAW
RAW_TRACEPOINT_PROBE(sched_process_free)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tid = task_tid(task);
	struct thread_state *thread = thread_find(tid);

	if (thread && thread->sched.exit_state &&
	    thread->identity.start_boot_ns == task_start_boot_ns(task)) {
		thread_list(thread);
		thread_forget(tid);
	}
	return 0;
}
#endif

#ifdef THREAD_EXIT_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_process_free)
{
	struct thread_state *thread = thread_find(args->pid);

	if (thread && thread->sched.exit_state) {
		thread_list(thread);
		thread_forget(args->pid);
	}
	return 0;
}
#endif
