/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread enters a system call: its record gets the call and the time.
 *
 * Knobs: SYSCALL_ENTER_TYPED, SYSCALL_ENTER_RAW or SYSCALL_ENTER_TRACEPOINT; CALL_WANTED(call):
 * true for calls that are measured; not defined: all are.
 */

#define CALL_WORD_READ(WORD, TYPE)                  \
	asm volatile("%0 = *(" #TYPE " *)(%1 + %2)" \
		     : "=r"(words[WORD])            \
		     : "r"(registers), "i"(8 * (THREAD_CALL_FROM + (WORD))));

/* registers: address of those that the kernel saved at this entry; 0: not known. */
static inline int call_begins(__u64 id, __u64 registers)
{
	__u64 words[THREAD_CALL_COUNT] = {};
	__u32 call = id & ~CALL_COMPAT_BIT;
	struct thread_state *thread;

#ifdef SYSCALL_ENTER_TYPED
	THREAD_CALL_NUMBER(words) = call;
	THREAD_CALL_COMPAT_PIECES(CALL_WORD_READ)
#elif defined(SYSCALL_ENTER_RAW) || KERNEL_STACK_REGISTERS
	bpf_probe_read_kernel(words, sizeof(words), (void *)(registers + 8 * THREAD_CALL_FROM));
#endif
	if (THREAD_CALL_COMPAT(words))
		call |= CALL_COMPAT_BIT;
#ifdef CALL_WANTED
	if (!CALL_WANTED(call)) /* its return finds no time of its entry */
		return 0;
#endif
	thread = thread_find(bpf_get_current_pid_tgid());
	if (!thread)
		return 0;
	thread->call = call;
	thread->call_ns = bpf_ktime_get_ns();
	return 0;
}

#ifndef SYSCALL_ENTER_TRACEPOINT
RAW_TRACEPOINT_PROBE(sys_enter)
{
	return call_begins(ctx->args[1], ctx->args[0]);
}
#else
TRACEPOINT_PROBE(raw_syscalls, sys_enter)
{
	__u64 id = args->id, registers = 0;

#if KERNEL_STACK_REGISTERS
	registers = task_kernel_stack((struct task_struct *)bpf_get_current_task()) +
		    KERNEL_STACK_REGISTERS;
#endif
	return call_begins(id, registers);
}
#endif
