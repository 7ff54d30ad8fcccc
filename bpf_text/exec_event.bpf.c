/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each exec as an event: the name before it, and the command line, read from the new program's
 * stack before it has run, because it may be gone when anybody looks.
 *
 * Included where LATENCY_EXEC is among LATENCY_KINDS.
 */

struct rename {
	__u32 tid;
	char comm[THREAD_COMM_SIZE];
};

/* The last name of a thread before its present one; one entry for all tids that are equal in their
 * low bits. */
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

struct arguments {
	__u64 count; /* number of arguments, with the program's name */
	__u64 text;  /* address of the first argument; 0: not known */
	__u64 bytes; /* length of all arguments, 1 to EXEC_ARGUMENT_BYTES; 0: not known */
};

/* A new program finds on its stack the number of its arguments, their addresses, 0, and those of
 * its environment, whose text follows that of the arguments: create_elf_tables() of
 * fs/binfmt_elf.c. */
static inline void arguments_find(struct arguments *found, __u64 kernel_stack)
{
#if KERNEL_STACK_REGISTERS
	__u64 stack = 0, end = 0, words[THREAD_CALL_COUNT] = {};
	__u64 from = kernel_stack + KERNEL_STACK_REGISTERS;

	bpf_probe_read_kernel(&stack, sizeof(stack), (void *)(from + 8 * THREAD_STACK_WORD));
	bpf_probe_read_kernel(words, sizeof(words), (void *)(from + 8 * THREAD_CALL_FROM));
	THREAD_CALL_NUMBER(words) = -1; /* the program's segment decides, not execve's entry */
	if (THREAD_CALL_COMPAT(words)) {
		bpf_probe_read_user(&found->count, 4, (void *)stack);
		bpf_probe_read_user(&found->text, 4, (void *)(stack + 4));
		bpf_probe_read_user(&end, 4, (void *)(stack + 4 * (found->count + 2)));
	} else {
		bpf_probe_read_user(&found->count, 8, (void *)stack);
		bpf_probe_read_user(&found->text, 8, (void *)(stack + 8));
		bpf_probe_read_user(&end, 8, (void *)(stack + 8 * (found->count + 2)));
	}
	if (!found->count)
		found->text = 0;
	if (end > found->text)
		found->bytes = end - found->text;
	if (found->bytes > EXEC_ARGUMENT_BYTES)
		found->bytes = EXEC_ARGUMENT_BYTES;
#endif
}

#ifdef READ_INTO_MAP
/* Copies the text of the arguments after the name. Returns the number of bytes. */
static inline __u32 arguments_copy(__u64 slot, struct arguments *found)
{
	__u64 bytes = found->bytes;

#define ARGUMENTS_TRY(BYTES)                                                                \
	if (!bpf_probe_read_user(EVENT_DATA(THREAD_COMM_SIZE), BYTES, (void *)found->text)) \
		return BYTES;
	if (bytes) {
		/* the verifier must see that this is neither 0, which 4.14 refuses, nor too much */
		asm volatile("%0 += -1\n\t%0 &= 255\n\t%0 += 1" : "+r"(bytes));
		ARGUMENTS_TRY(bytes)
	}
	/* without an environment the text is near the end of the stack: copies as much as there
	 * is */
	ARGUMENTS_TRY(EXEC_ARGUMENT_BYTES)
	ARGUMENTS_TRY(128)
	ARGUMENTS_TRY(64)
	ARGUMENTS_TRY(32)
	ARGUMENTS_TRY(16)
	return 0;
}
#else
/* Copies the text of the arguments after the name in pieces, because helpers write only to the
 * program's stack, which is small. Returns the number of bytes. */
static inline __u32 arguments_copy(__u64 slot, struct arguments *found)
{
	__u64 piece[4] = {};

#define ARGUMENTS_PIECE(AT)                                                          \
	if (bpf_probe_read_user(piece, sizeof(piece), (void *)(found->text + (AT)))) \
		return AT;                                                           \
	__builtin_memcpy(EVENT_DATA(THREAD_COMM_SIZE + (AT)), piece, sizeof(piece)); \
	if (found->bytes && found->bytes <= (AT) + sizeof(piece))                    \
		return found->bytes;
	ARGUMENTS_PIECE(0)
	ARGUMENTS_PIECE(32)
	ARGUMENTS_PIECE(64)
	ARGUMENTS_PIECE(96)
	ARGUMENTS_PIECE(128)
	ARGUMENTS_PIECE(160)
	ARGUMENTS_PIECE(192)
	ARGUMENTS_PIECE(224)
	return EXEC_ARGUMENT_BYTES;
}
#endif

/* before: the name that the record has. */
static inline void exec_describe(struct thread_state *thread, __u64 *before)
{
	__u32 at = thread->sched.tid % 1024, bytes = THREAD_COMM_SIZE;
	struct rename *rename = ts_renames.lookup(&at);
	struct arguments found = {};
	struct latency_key key = {};
	struct trace_event *event;
	__u64 slot;

	if (!latency_key_fill(&key, thread, LATENCY_EXEC))
		return;
	if (rename && rename->tid == thread->sched.tid)
		__builtin_memcpy(before, rename->comm, THREAD_COMM_SIZE);
	arguments_find(&found, thread->kernel_stack);
	key.what[EXEC_PARENT] = thread->identity.parent_tgid;
	key.what[EXEC_ARGUMENTS] = found.count;
	event = event_begin(&slot, &key, bpf_ktime_get_ns(), 0);
	if (!event)
		return;
	__builtin_memcpy(event->data, before, THREAD_COMM_SIZE);
	if (found.text)
		bytes += arguments_copy(slot, &found);
	event = event_at(slot);
	if (!event)
		return;
	event->data_bytes = bytes;
	event_end(event);
}
