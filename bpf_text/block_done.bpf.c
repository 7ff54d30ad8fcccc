/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request is completed, on any CPU.
 *
 * Knobs: BLOCK_DONE_TYPED, BLOCK_DONE_RAW or BLOCK_DONE_TRACEPOINT.
 */

#ifdef BLOCK_DONE_TYPED
#define BLOCK_DONE_RAW 1
#define DONE_TYPED 1
#else
#define DONE_TYPED 0
#endif

#ifdef BLOCK_DONE_RAW
/* The arguments are (request, error, bytes) in all kernels that have raw tracepoints. It is called
 * before the bytes that are done are taken off the request's length. */
RAW_TRACEPOINT_PROBE(block_rq_complete)
{
	struct request *from = (struct request *)ctx->args[0];
	struct block_key key = {.request = (__u64)from};

	if ((__u32)ctx->args[2] >= request_bytes(from, DONE_TYPED))
		request_done(&key);
	return 0;
}
#endif

#ifdef BLOCK_DONE_TRACEPOINT
/* Ends a request that is completed in parts at its first part: the others begin elsewhere. */
TRACEPOINT_PROBE(block, block_rq_complete)
{
	struct block_key key = {.request = args->sector, .dev = args->dev};

	request_done(&key);
	return 0;
}
#endif
