/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread on this CPU (0: none, the CPU idles), and what it does, even if it never leaves the
 * CPU. In user mode the interrupt's own registers lie where a system call's would, with -1 for its
 * number.
 *
 * Knobs: ON_CPU_LOOK: the sampler has the program run on a CPU when it wants to know (5.10);
 * ON_CPU_CLOCK: a perf clock runs it on every CPU. KEEP_STACKS: the look has the kernel write a
 * perf sample with the thread's stacks, too. LOOK_AT_MEMORY: it reads what a pointer of the thread
 * leads to, whose address the sampler has put into ts_look_at.
 */

BPF_TABLE("percpu_array", __u32, struct cpu_tick, ts_ticks, 1);

#if defined(LOOK_AT_MEMORY) && defined(ON_CPU_LOOK)
BPF_TABLE("lru_hash", __u32, __u64, ts_look_at, LOOKS_AT_MAX);
BPF_TABLE("percpu_array", __u32, struct memory_look, ts_memory, 1);

static inline void memory_look(const struct cpu_tick *tick)
{
	__u32 tid = tick->tid, zero = 0;
	__u64 *at = tid ? ts_look_at.lookup(&tid) : 0, record = 0;
	struct memory_look *look = ts_memory.lookup(&zero);
	__u32 more = 0;

	if (!look)
		return;
	look->tick_ns = tick->tick_ns;
	look->tid = tid;
	look->bytes = 0;
	if (!at || bpf_probe_read_user(&record, sizeof(record), (void *)*at) || !record ||
	    bpf_probe_read_user(look->data, LOOK_HEAD, (void *)record))
		return;
	look->bytes = LOOK_HEAD;
	more = look->data[LOOK_HEAD - 2] | look->data[LOOK_HEAD - 1] << 8;
	if (!more || more >= LOOK_MORE)
		return;
	/* the verifier takes the mask for the limit, and the compiler must not leave it out */
	asm volatile("" : "+r"(more));
	more &= LOOK_MORE - 1;
	if (!bpf_probe_read_user(look->data + LOOK_HEAD, more, (void *)(record + LOOK_HEAD)))
		look->bytes += more;
}
#endif

static inline void cpu_look(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = bpf_get_current_pid_tgid(), zero = 0;
	struct cpu_tick *tick = ts_ticks.lookup(&zero);

	if (!tick)
		return;
#ifdef KEEP_REGISTERS
	if (tid)
		registers_read(tick->registers, task_kernel_stack(task));
#endif
	tick->tid = tid ? task_shown_tid(task, tid) : 0;
	tick->tick_ns = bpf_ktime_get_ns();
#if defined(LOOK_AT_MEMORY) && defined(ON_CPU_LOOK)
	memory_look(tick);
#endif
}

#ifdef ON_CPU_LOOK
#ifdef KEEP_STACKS
BPF_PERF_OUTPUT(ts_looked);
#endif

int ts_look(struct bpf_raw_tracepoint_args *ctx)
{
	cpu_look();
#ifdef KEEP_STACKS
	__u64 nothing = 0; /* the event's attributes decide what the sample has */

	ts_looked.perf_submit(ctx, &nothing, sizeof(nothing));
#endif
	return 0;
}
#endif

#ifdef ON_CPU_CLOCK
int ts_clock(void *ctx)
{
	cpu_look();
	return 0;
}
#endif
