/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread comes back from a system call that it was seen to enter.
 *
 * Knobs: SYSCALL_EXIT_RAW or SYSCALL_EXIT_TRACEPOINT; LATENCY_KINDS (latency.bpf.c);
 * CALL_ACCEPT, CALL_ACCEPT4: numbers of these calls; CONNECTIONS_SEEN (connection.bpf.c).
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

#ifdef CONNECTIONS_SEEN
static inline void accept_ends(__u32 call, __s64 result)
{
	if (result >= 0 && (call == CALL_ACCEPT || call == CALL_ACCEPT4))
		connection_accepted(result);
}
#endif

#ifdef SYSCALL_EXIT_RAW
RAW_TRACEPOINT_PROBE(sys_exit)
{
#ifdef CONNECTIONS_SEEN
	__u64 words[THREAD_CALL_COUNT] = {};

	bpf_probe_read_kernel(words, sizeof(words), (void *)(ctx->args[0] + 8 * THREAD_CALL_FROM));
	accept_ends((__u32)THREAD_CALL_NUMBER(words), ctx->args[1]);
#endif
	call_ends(ctx->args[1]);
	return 0;
}
#endif

#ifdef SYSCALL_EXIT_TRACEPOINT
TRACEPOINT_PROBE(raw_syscalls, sys_exit)
{
#ifdef CONNECTIONS_SEEN
	accept_ends(args->id, args->ret);
#endif
	call_ends(args->ret);
	return 0;
}
#endif
