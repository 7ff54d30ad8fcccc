/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread comes back from a system call that it was seen to enter.
 *
 * Knobs: SYSCALL_EXIT_RAW or SYSCALL_EXIT_TRACEPOINT; LATENCY_KINDS (latency.bpf.c).
 */

#define CALL_ERRORS 4095 /* MAX_ERRNO: -4095 to -1 are errors */

static inline void call_ends(__s64 result)
{
	struct thread_state *thread = thread_find(bpf_get_current_pid_tgid());
	__u64 began_ns, now_ns;

	if (!thread)
		return;
	began_ns = thread->call_ns;
	if (!began_ns)
		return;
	thread->call_ns = 0;
#ifdef LATENCY_KINDS
#if LATENCY_HAS(LATENCY_SYSCALLS)
	struct latency_key key = {};

	now_ns = bpf_ktime_get_ns();
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, (struct task_struct *)bpf_get_current_task(),
			      thread->sched.tid);
	if (!latency_key_fill(&key, thread, LATENCY_SYSCALLS))
		return;
	key.what[SYSCALLS_CALL] = thread->call;
	if ((__u64)result >= (__u64)-CALL_ERRORS)
		key.what[SYSCALLS_ERROR] = -result;
	latency_add(&key, now_ns - began_ns);
	slow_event(&key, thread, now_ns, now_ns - began_ns);
#endif
#endif
}

#ifdef SYSCALL_EXIT_RAW
RAW_TRACEPOINT_PROBE(sys_exit)
{
	call_ends(ctx->args[1]);
	return 0;
}
#endif

#ifdef SYSCALL_EXIT_TRACEPOINT
TRACEPOINT_PROBE(raw_syscalls, sys_exit)
{
	call_ends(args->ret);
	return 0;
}
#endif
