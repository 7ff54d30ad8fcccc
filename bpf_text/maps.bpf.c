/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread state array and the few functions that every probe uses. Always the first fragment.
 *
 * Knobs: THREADS_MAX; CPUS_MAX; KERNEL_STACK_REGISTERS, where the saved registers lie above
 * task->stack (0: not known); READ_INTO_MAP where a helper may write to a map value (4.14);
 * THREAD_SLOTS where the array is one that the sampler maps into its memory (5.5), else it is a
 * hash by tid; NEAR_MAX, a power of two.
 *
 * With slots, ts_slots has each thread's slot, and ts_near is a shortcut to it: an entry for all
 * tids that are equal in their low bits, which may be of another thread, or out of date; the
 * record's tid decides.
 */

/* Plain bytes in place of a struct with long arrays: libbcc makes code that prints and reads in
 * every member of a map's values, and of every array in them, which takes longer than all else for
 * long arrays. */
#define BYTES_OF(name)                           \
	struct name##_bytes {                    \
		char bytes[sizeof(struct name)]; \
	} __attribute__((aligned(8)))

#ifdef THREAD_SLOTS
#define THREAD_SCHED_AT __builtin_offsetof(struct thread_state, sched.out_ns)
#define THREAD_SCHED_BYTES \
	(__builtin_offsetof(struct thread_state, sched.registers_sequence) - THREAD_SCHED_AT)
#define MAPPED_FLAG (1 << 10) /* BPF_F_MMAPABLE */
BPF_F_TABLE("array", __u32, struct thread_state, ts_threads, THREADS_MAX, MAPPED_FLAG);
BPF_TABLE("hash", __u32, __u32, ts_slots, THREADS_MAX);
BPF_TABLE("array", __u32, __u32, ts_near, NEAR_MAX);
BPF_QUEUESTACK("stack", ts_free, __u32, THREADS_MAX, 0);
#else
#define MAPPED_FLAG 0
BPF_TABLE("hash", __u32, struct thread_state, ts_threads, THREADS_MAX);
#endif
BPF_TABLE("percpu_array", __u32, struct probe_counters, ts_counters, 1);
BPF_F_TABLE("array", __u32, struct sampling, ts_sampling, 1, MAPPED_FLAG);
BYTES_OF(changed_ring);
BPF_F_TABLE("array", __u32, struct changed_ring_bytes, ts_changed, CPUS_MAX, MAPPED_FLAG);

/* Keeps the compiler from moving a group's words past its sequence numbers. */
#define ORDERED() asm volatile("" ::: "memory")

/* Verifiers before 4.15 take two ways through a program for different if one left something in a
 * register that the other did not, and follow both to the end: the number of ways before this point
 * is multiplied by that after it. This function leaves the same in all registers. */
#if defined(THREAD_SLOTS) || !defined(LATENCY_KINDS)
static inline void ways_meet(void)
{
}
#else
/* The ten outputs are all registers that a program has. */
static inline void ways_meet(void)
{
	__u64 a, b, c, d, e, f, g, h, i, j;

	asm volatile("%0 = 0\n\t%1 = 0\n\t%2 = 0\n\t%3 = 0\n\t%4 = 0\n\t"
		     "%5 = 0\n\t%6 = 0\n\t%7 = 0\n\t%8 = 0\n\t%9 = 0"
		     : "=r"(a), "=r"(b), "=r"(c), "=r"(d), "=r"(e), "=r"(f), "=r"(g), "=r"(h),
		       "=r"(i), "=r"(j)::"memory");
}
#endif

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
	thread->kernel_stack = task_kernel_stack(task);
	ORDERED();
	thread->identity.known = IDENTITY_NAME | IDENTITY_FULL;
}

/* Puts a thread on the changed list, once a scan. To be called after what has changed is written.
 */
static inline void thread_list(struct thread_state *thread)
{
	__u32 zero = 0, cpu;
	struct sampling *sampling = ts_sampling.lookup(&zero);
	struct changed_ring *ring;
	__u64 at, before;

	if (!sampling || thread->wake.listed_scan == sampling->scan)
		return;
	thread->wake.listed_scan = sampling->scan;
	cpu = bpf_get_smp_processor_id();
	ring = (struct changed_ring *)ts_changed.lookup(&cpu);
	if (!ring)
		return;
	before = at = ring->count;
	/* old verifiers know a bound by a mask, which the compiler would leave out */
	asm volatile("%0 &= 1023" : "+r"(at));
	ring->keys[at] = thread->key;
	ORDERED();
	__sync_fetch_and_add(&ring->count, 1);
	ORDERED();
	/* Another program may have come between, with interrupts on, and taken the same slot: all
	 * threads must be looked at, as after an overflow. */
	if (ring->count != before + 1)
		__sync_fetch_and_add(&ring->count, CHANGED_MAX);
}

static inline void map_full_count(void)
{
	__u32 zero = 0;
	struct probe_counters *counters = ts_counters.lookup(&zero);

	if (counters)
		counters->map_full++;
}

#ifdef THREAD_SLOTS
static inline struct thread_state *thread_find(__u32 tid)
{
	__u32 near = tid & (NEAR_MAX - 1), *shortcut = ts_near.lookup(&near), *slot;
	struct thread_state *thread;

	if (!shortcut)
		return 0;
	thread = ts_threads.lookup(shortcut);
	if (thread && thread->sched.tid == tid)
		return thread;
	slot = ts_slots.lookup(&tid);
	if (!slot)
		return 0;
	*shortcut = *slot;
	return ts_threads.lookup(slot);
}

/* Returns the thread's slot, or a free one that it now has; NULL: all are taken. */
static inline __u32 *slot_take(__u32 tid)
{
	__u32 fresh, *slot = ts_slots.lookup(&tid);

	if (slot)
		return slot;
	if (ts_free.pop(&fresh))
		return 0;
	/* another CPU may have been first */
	if (ts_slots.insert(&tid, &fresh))
		ts_free.push(&fresh, 0);
	return ts_slots.lookup(&tid);
}

/* Returns a new record, or the tid's old record made new; NULL: the map is full. The sequence
 * numbers go on: a copy that has parts of the old record is never whole. */
static inline struct thread_state *thread_make(__u32 tid, __u64 now_ns)
{
	__u32 *slot = slot_take(tid), near = tid & (NEAR_MAX - 1);
	struct thread_state *thread = slot ? ts_threads.lookup(slot) : 0;
	__u64 sequence;

	if (!thread) {
		map_full_count();
		return 0;
	}
	sequence = thread->sched.sequence_done + 1;
	thread->sched.sequence_begun = sequence;
	ORDERED();
	__builtin_memset(&thread->wake, 0, sizeof(thread->wake));
	__builtin_memset((char *)thread + THREAD_SCHED_AT, 0, THREAD_SCHED_BYTES);
	__builtin_memset(&thread->identity, 0, sizeof(thread->identity));
	thread->sched.out_ns = now_ns;
	thread->sched.in_ns = now_ns;
	thread->sched.tid = tid;
	thread->identity.tid = tid;
	thread->kernel_stack = 0;
	thread->call_ns = 0;
	thread->key = *slot;
	ORDERED();
	thread->sched.sequence_done = sequence;
	ts_near.update(&near, slot);
	thread_list(thread);
	return thread;
}

static inline void thread_forget(__u32 tid)
{
	__u32 slot, *known = ts_slots.lookup(&tid);
	struct thread_state *thread;

	if (!known)
		return;
	slot = *known;
	/* user space may be removing the record, too: the slot must be freed once only */
	if (ts_slots.delete(&tid))
		return;
	thread = ts_threads.lookup(&slot);
	if (thread)
		thread->sched.tid = 0;
	ts_free.push(&slot, 0);
}
#else
static inline struct thread_state *thread_find(__u32 tid)
{
	return ts_threads.lookup(&tid);
}

static inline struct thread_state *thread_make(__u32 tid, __u64 now_ns)
{
	struct thread_state fresh = {};
	struct thread_state *thread;

	fresh.sched.out_ns = now_ns;
	fresh.sched.in_ns = now_ns;
	fresh.sched.tid = tid;
	fresh.identity.tid = tid;
	fresh.key = tid;
	ts_threads.update(&tid, &fresh);
	thread = ts_threads.lookup(&tid);
	if (!thread) {
		map_full_count();
		return 0;
	}
	thread_list(thread);
	return thread;
}

static inline void thread_forget(__u32 tid)
{
	ts_threads.delete(&tid);
}
#endif

/* Returns the record of a key that a sampler requested; NULL: there is none. *sequence is read
 * before anything else. */
static inline struct thread_state *thread_requested(__u32 key, __u64 *sequence)
{
	struct thread_state *thread = ts_threads.lookup(&key);

	if (thread) {
		*sequence = thread->sched.sequence_done;
		ORDERED();
	}
	return thread;
}

/* Copies registers of a thread, that many words of them from word FROM on, to REGISTER_TO(TO) in a
 * map's value. from: where it saved them. */
#ifdef READ_INTO_MAP
#define REGISTER_PIECES THREAD_REGISTER_PIECES
#define REGISTER_PIECE(TO, FROM, COUNT) \
	bpf_probe_read_kernel(REGISTER_TO(TO), 8 * (COUNT), (void *)(from + 8 * (FROM)));
#else
#define REGISTER_PIECES THREAD_REGISTER_SMALL_PIECES
#define REGISTER_PIECE(TO, FROM, COUNT)                                                   \
	{                                                                                 \
		__u64 words[COUNT] = {};                                                  \
                                                                                          \
		bpf_probe_read_kernel(words, sizeof(words), (void *)(from + 8 * (FROM))); \
		__builtin_memcpy(REGISTER_TO(TO), words, sizeof(words));                  \
	}
#endif

/* Copies the registers that the thread with that stack saved when it entered the kernel. */
static inline void registers_read(__u64 *registers, __u64 kernel_stack)
{
#if KERNEL_STACK_REGISTERS
	__u64 from = kernel_stack + KERNEL_STACK_REGISTERS;

#define REGISTER_TO(AT) (registers + (AT))
	REGISTER_PIECES(REGISTER_PIECE)
#undef REGISTER_TO
#endif
}
