/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The driver gets a request.
 *
 * Knobs: BLOCK_ISSUE_TYPED, BLOCK_ISSUE_RAW or BLOCK_ISSUE_TRACEPOINT.
 */

#ifdef BLOCK_ISSUE_TYPED
#define BLOCK_ISSUE_RAW 1
#define ISSUE_TYPED 1
#else
#define ISSUE_TYPED 0
#endif

#ifdef BLOCK_ISSUE_RAW
RAW_TRACEPOINT_PROBE(block_rq_issue)
{
	struct request *from = (struct request *)ctx->args[BLOCK_ARGUMENT];
	struct block_key key = {.request = (__u64)from};
	struct block_request request = {}, *known = ts_block.lookup(&key);

	if (known)
		request.bytes = request_bytes(from, ISSUE_TYPED);
	else
		request_fill(from, &request, ISSUE_TYPED);
	request_issued(&key, known, &request);
	return 0;
}
#endif

#ifdef BLOCK_ISSUE_TRACEPOINT
TRACEPOINT_PROBE(block, block_rq_issue)
{
	struct block_key key = {.request = args->sector, .dev = args->dev};
	struct block_request request = {.dev = args->dev,
					.bytes = event_bytes(args->bytes, args->nr_sector)};

	request.op = request_op_of(args->rwbs[0], args->rwbs[1]);
	request_issued(&key, ts_block.lookup(&key), &request);
	return 0;
}
#endif
