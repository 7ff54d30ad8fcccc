/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of threads that are off their CPUs, when a sampler wants them: it runs the program
 * with the number of its struct registers_ask (5.10). A thread whose sequence has not moved since
 * has not run either, so they were its own.
 *
 * Knobs: REGISTERS_ASKED.
 */

BYTES_OF(registers_ask);
BPF_F_TABLE("array", __u32, struct registers_ask_bytes, ts_asks, ASKERS_MAX, MAPPED_FLAG);

int ts_ask(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 asker = ctx->args[0];
	struct registers_ask *ask = (struct registers_ask *)ts_asks.lookup(&asker);
	struct thread_state *thread;

	if (!ask)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < ASK_MAX; i++) {
		if (i >= ask->count)
			break;
		thread = thread_asked(ask->keys[i], &ask->sequences[i]);
		if (thread)
			registers_read(ask->registers[i], thread->kernel_stack);
	}
	return 0;
}
