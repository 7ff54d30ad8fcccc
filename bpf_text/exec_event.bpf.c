/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each exec as an event: the name before it, and the command line, read from the new program's
 * stack before it has run, because it may be gone when anybody looks.
 *
 * Where there is LATENCY_EXEC among LATENCY_KINDS.
 */

struct rename {
	__u32 tid;
	char comm[THREAD_COMM_SIZE];
};

/* The last name of a thread before its present one; of all tids equal in their low bits. */
BPF_TABLE("array", __u32, struct rename, ts_renames, 1024);

static inline void rename_note(struct thread_state *thread)
{
	__u32 at = thread->sched.tid % 1024;
	struct rename *rename = ts_renames.lookup(&at);

	if (!rename)
		return;
	rename->tid = thread->sched.tid;
	__builtin_memcpy(rename->comm, thread->identity.comm, sizeof(rename->comm));
}

/* A new program finds on its stack the number of its arguments, their addresses, 0, and those of
 * its environment, whose text follows that of the arguments: create_elf_tables() of
 * fs/binfmt_elf.c. */
static inline __u32 arguments_read(char *to, __u64 kernel_stack, __u32 *count)
{
	__u32 got = 0;
#if KERNEL_STACK_REGISTERS && defined(READ_INTO_MAP)
	__u64 stack = 0, number = 0, first = 0, end = 0, bytes = 8, words[THREAD_CALL_COUNT] = {};
	__u64 from = kernel_stack + KERNEL_STACK_REGISTERS;

	bpf_probe_read_kernel(&stack, sizeof(stack), (void *)(from + 8 * THREAD_STACK_WORD));
	bpf_probe_read_kernel(words, sizeof(words), (void *)(from + 8 * THREAD_CALL_FROM));
	THREAD_CALL_NUMBER(words) = -1; /* its own segment tells, not how execve was called */
	if (THREAD_CALL_COMPAT(words)) {
		bpf_probe_read_user(&number, 4, (void *)stack);
		bpf_probe_read_user(&first, 4, (void *)(stack + 4));
		bpf_probe_read_user(&end, 4, (void *)(stack + 4 * (number + 2)));
	} else {
		bpf_probe_read_user(&number, 8, (void *)stack);
		bpf_probe_read_user(&first, 8, (void *)(stack + 8));
		bpf_probe_read_user(&end, 8, (void *)(stack + 8 * (number + 2)));
	}
	if (!number || !first)
		return 0;
	*count = number;
	if (end > first) {
		end -= first;
		if (end > EXEC_ARGUMENT_BYTES)
			end = EXEC_ARGUMENT_BYTES;
		asm volatile("%0 &= 255" : "+r"(end));
		if (end <= EXEC_ARGUMENT_BYTES && !bpf_probe_read_user(to, end, (void *)first))
			got = end;
	}
	/* without an environment it is near the end of the stack: as much as there is */
#define ARGUMENTS_TRY(BYTES)                                        \
	if (!got && !bpf_probe_read_user(to, BYTES, (void *)first)) \
		got = BYTES;
	ARGUMENTS_TRY(EXEC_ARGUMENT_BYTES)
	ARGUMENTS_TRY(128)
	ARGUMENTS_TRY(64)
	ARGUMENTS_TRY(32)
	ARGUMENTS_TRY(16)
#endif
	return got;
}

/* before: the name that the record has. */
static inline void exec_tell(struct thread_state *thread, __u64 *before)
{
	__u32 at = thread->sched.tid % 1024;
	struct rename *rename = ts_renames.lookup(&at);
	struct latency_key key = {};
	struct trace_event *event;

	if (!latency_key_fill(&key, thread, LATENCY_EXEC))
		return;
	key.what[EXEC_PARENT] = thread->identity.parent_tgid;
	event = event_begin(&key, bpf_ktime_get_ns(), 0);
	if (!event)
		return;
	if (rename && rename->tid == thread->sched.tid)
		__builtin_memcpy(event->data, rename->comm, THREAD_COMM_SIZE);
	else
		__builtin_memcpy(event->data, before, THREAD_COMM_SIZE);
	event->data_bytes = THREAD_COMM_SIZE;
	event->data_bytes += arguments_read(event->data + THREAD_COMM_SIZE, thread->kernel_stack,
					    &event->key.what[EXEC_ARGUMENTS]);
	event_end(event);
}
