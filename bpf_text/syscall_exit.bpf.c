/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread comes back from a system call that it was seen to enter.
 *
 * Knobs: SYSCALL_EXIT_RAW or SYSCALL_EXIT_TRACEPOINT; LATENCY_KINDS (latency.bpf.c);
 * CALL_ACCEPT, CALL_ACCEPT4: numbers of these calls; CONNECTIONS_SEEN (connection.bpf.c);
 * EVENTS_OPEN (open_event.bpf.c).
 */

#define CALL_ERRORS 4095 /* MAX_ERRNO: -4095 to -1 are errors */

#ifdef LATENCY_KINDS
#if LATENCY_HAS(LATENCY_SYSCALLS)
#define CALLS_COUNTED 1
#endif
#endif

#ifdef CALLS_COUNTED
static inline void call_count(struct thread_state *thread, __u32 error, __u64 now_ns,
			      __u64 duration_ns)
{
	struct latency_key key = {};

	if (!latency_key_fill(&key, thread, LATENCY_SYSCALLS))
		return;
	key.what[SYSCALLS_CALL] = thread->call;
	key.what[SYSCALLS_ERROR] = error;
	latency_add(&key, duration_ns);
	slow_event(&key, thread, now_ns, duration_ns);
}
#endif

static inline void call_ends(__s64 result)
{
	struct thread_state *thread = thread_find(bpf_get_current_pid_tgid());
	__u64 began_ns, now_ns;
	__u32 error = 0;

	if (!thread)
		return;
	began_ns = thread->call_ns;
	if (!began_ns)
		return;
	thread->call_ns = 0;
#if defined(CALLS_COUNTED) || defined(EVENTS_OPEN)
	now_ns = bpf_ktime_get_ns();
	if (!(thread->identity.known & IDENTITY_FULL))
		identity_read(thread, (struct task_struct *)bpf_get_current_task(),
			      thread->sched.tid);
	if ((__u64)result >= (__u64)-CALL_ERRORS)
		error = -result;
#endif
#ifdef EVENTS_OPEN
	open_ends(thread, error, now_ns, now_ns - began_ns);
#endif
#ifdef CALLS_COUNTED
	call_count(thread, error, now_ns, now_ns - began_ns);
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
