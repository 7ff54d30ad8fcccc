/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread state array and the few functions that every probe uses. Always the first fragment.
 *
 * Knobs: THREADS_MAX; KERNEL_STACK_REGISTERS, where the saved registers lie above task->stack (0:
 * not known); READ_INTO_MAP where a helper may write to a map value (4.14). */

BPF_TABLE("hash", __u32, struct thread_state, ts_threads, THREADS_MAX);
BPF_TABLE("percpu_array", __u32, struct probe_counters, ts_counters, 1);
BPF_TABLE("array", __u32, __u32, ts_scan, 1);
BPF_TABLE("percpu_array", __u32, struct changed_list, ts_changed, 2);

/* Keeps the compiler from moving a group's words past its sequence numbers. */
#define ORDERED() asm volatile("" ::: "memory")

static inline void identity_read(struct thread_state *thread, struct task_struct *task, __u32 tid)
{
	char comm[THREAD_COMM_SIZE] = {};

	/* through the stack: 4.9's helpers do not write to map values */
	task_comm(task, comm);
	__builtin_memcpy(thread->identity.comm, comm, sizeof(comm));
	thread->identity.tid = task_shown_tid(task, tid);
	thread->identity.tgid = task_shown_tgid(task);
	thread->identity.start_boot_ns = task_start_boot_ns(task);
	thread->identity.parent_tgid = task_parent_tgid(task);
	thread->identity.uid = task_uid(task);
	thread->identity.task_flags = task_flags(task);
	thread->identity.known = IDENTITY_NAME | IDENTITY_FULL;
	thread->kernel_stack = task_kernel_stack(task);
}

/* Puts a thread on the changed list, once a scan. To be called after what has changed is written.
 */
static inline void thread_list(struct thread_state *thread, __u32 tid)
{
	__u32 zero = 0, scan, half, *now = ts_scan.lookup(&zero);
	struct changed_list *list;
	__u64 at;

	if (!now || thread->wake.listed_scan == *now)
		return;
	scan = *now;
	thread->wake.listed_scan = scan;
	half = scan & 1;
	list = ts_changed.lookup(&half);
	if (!list)
		return;
	if (list->scan != scan) {
		list->scan = scan;
		list->count = 0;
	}
	at = list->count;
	list->count = at + 1;
	if (at < CHANGED_MAX) {
		/* old verifiers know a bound by a mask, which the compiler would leave out */
		asm volatile("%0 &= 1023" : "+r"(at));
		list->tids[at] = tid;
	}
}

static inline struct thread_state *thread_find(__u32 tid)
{
	return ts_threads.lookup(&tid);
}

/* A new record, or the old one of that tid made new. NULL when the map is full. */
static inline struct thread_state *thread_make(__u32 tid, __u64 now_ns)
{
	struct thread_state fresh = {};
	struct thread_state *thread;

	fresh.sched.out_ns = now_ns;
	fresh.sched.in_ns = now_ns;
	fresh.sched.tid = tid;
	fresh.identity.tid = tid;
	ts_threads.update(&tid, &fresh);
	thread = ts_threads.lookup(&tid);
	if (!thread) {
		__u32 zero = 0;
		struct probe_counters *counters = ts_counters.lookup(&zero);

		if (counters)
			counters->map_full++;
		return 0;
	}
	thread_list(thread, tid);
	return thread;
}

static inline void thread_forget(__u32 tid)
{
	ts_threads.delete(&tid);
}

#define REGISTERS_READ_PIECE(TO, FROM, COUNT) \
	bpf_probe_read_kernel(to + (TO), 8 * (COUNT), (void *)(from + 8 * (FROM)));

/* Copies the registers that the thread with that stack saved when it entered the kernel. */
static inline void registers_read(__u64 *registers, __u64 kernel_stack)
{
#if KERNEL_STACK_REGISTERS
	__u64 from = kernel_stack + KERNEL_STACK_REGISTERS;
#ifdef READ_INTO_MAP
	__u64 *to = registers;

	THREAD_REGISTER_PIECES(REGISTERS_READ_PIECE)
#else
	__u64 to[THREAD_REGISTER_COUNT] = {};

	THREAD_REGISTER_PIECES(REGISTERS_READ_PIECE)
	__builtin_memcpy(registers, to, sizeof(to));
#endif
#endif
}
