/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the registers that a walk of the thread's user stack begins with, on request, as
 * registers.bpf.c does (5.10). */

BYTES_OF(stack_request);
BPF_F_TABLE("array", __u32, struct stack_request_bytes, ts_stack_reqs, REQUESTERS_MAX, MAPPED_FLAG);

#define STACK_READ_PIECE(TO, FROM, COUNT)                                \
	bpf_probe_read_kernel(request->registers[i] + (TO), 8 * (COUNT), \
			      (void *)(from + 8 * (FROM)));

int ts_request_stack(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 requester = ctx->args[0];
	struct stack_request *request = (struct stack_request *)ts_stack_reqs.lookup(&requester);
	struct thread_state *thread;
	__u64 from;

	if (!request)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < REQUESTS_MAX; i++) {
		if (i >= request->count)
			break;
		thread = thread_requested(request->keys[i], &request->sequences[i]);
		if (!thread)
			continue;
		from = thread->kernel_stack + KERNEL_STACK_REGISTERS;
		STACK_REGISTER_PIECES(STACK_READ_PIECE)
	}
	return 0;
}
