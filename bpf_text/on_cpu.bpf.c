/* The perf clock: what the thread on this CPU is doing, also where it never leaves the CPU. In user mode the
 * interrupt's own registers lie where a system call's would, with -1 for its number. */

BPF_TABLE("percpu_array", __u32, struct cpu_tick, ts_ticks, 1);

int ts_on_cpu(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = bpf_get_current_pid_tgid(), zero = 0;
	struct cpu_tick *tick = ts_ticks.lookup(&zero);

	if (!tick || !tid)
		return 0;
	registers_read(tick->registers, task_kernel_stack(task));
	tick->tid = tid;
	tick->tick_ns = bpf_ktime_get_ns();
	return 0;
}
