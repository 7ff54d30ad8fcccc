/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Like registers.bpf.c, but for the registers that a walk of the thread's user stack begins with
 * (5.10). */

BYTES_OF(stack_ask);
BPF_F_TABLE("array", __u32, struct stack_ask_bytes, ts_stack_asks, ASKERS_MAX, MAPPED_FLAG);

#define STACK_READ_PIECE(TO, FROM, COUNT) \
	bpf_probe_read_kernel(ask->registers[i] + (TO), 8 * (COUNT), (void *)(from + 8 * (FROM)));

int ts_ask_stack(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 asker = ctx->args[0];
	struct stack_ask *ask = (struct stack_ask *)ts_stack_asks.lookup(&asker);
	struct thread_state *thread;
	__u64 from;

	if (!ask)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < ASK_MAX; i++) {
		if (i >= ask->count)
			break;
		thread = thread_asked(ask->keys[i], &ask->sequences[i]);
		if (!thread)
			continue;
		from = thread->kernel_stack + KERNEL_STACK_REGISTERS;
		STACK_REGISTER_PIECES(STACK_READ_PIECE)
	}
	return 0;
}
