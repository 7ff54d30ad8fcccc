/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the registers of threads that are off their CPUs when a sampler requests them: it runs the
 * program with the number of its struct registers_request (5.10). A thread whose sequence has not
 * moved since has not run either, so the registers were its own.
 *
 * Knobs: REGISTERS_REQUESTED.
 */

BYTES_OF(registers_request);
BPF_F_TABLE("array", __u32, struct registers_request_bytes, ts_requests, REQUESTERS_MAX,
	    MAPPED_FLAG);

int ts_request(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 requester = ctx->args[0];
	struct registers_request *request =
		(struct registers_request *)ts_requests.lookup(&requester);
	struct thread_state *thread;

	if (!request)
		return 0;
#pragma clang loop unroll(disable)
	for (int i = 0; i < REQUESTS_MAX; i++) {
		if (i >= request->count)
			break;
		thread = thread_requested(request->keys[i], &request->sequences[i]);
		if (thread)
			registers_read(request->registers[i], thread->kernel_stack);
	}
	return 0;
}
