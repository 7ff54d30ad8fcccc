/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread makes a request.
 *
 * Knobs: BLOCK_QUEUE_START_TYPED or BLOCK_QUEUE_START (block_io_start: every request, before
 * anything else happens to it), BLOCK_QUEUE_INSERT (block_rq_insert: just those that a scheduler or
 * a software queue holds; the others are issued at once, by the thread that makes them) or
 * BLOCK_QUEUE_TRACEPOINT (the same).
 */

#ifdef BLOCK_QUEUE_START_TYPED
#define BLOCK_QUEUE_START 1
#define QUEUE_TYPED 1
#else
#define QUEUE_TYPED 0
#endif

#ifdef BLOCK_QUEUE_START
#define REQUEST_PREFLUSH_BIT (1u << 18) /* REQ_PREFLUSH, since 4.10 */

/* Counts a completion that was not seen: the kernel uses the memory of a request again, so it was
 * completed, but none of our programs was run then, for example because the interrupt came upon a
 * task that a sandbox hides from them. */
static inline void request_unseen(const struct block_request *before)
{
	struct probe_counters *counters;
	__u32 zero = 0;

	if (!before || !before->issue_ns)
		return;
	counters = ts_counters.lookup(&zero);
	if (counters)
		counters->block_unseen++;
}

RAW_TRACEPOINT_PROBE(block_io_start)
{
	struct request *from = (struct request *)ctx->args[0];
	struct block_key key = {.request = (__u64)from};
	struct block_request request = {};
	__u32 flags = request_fill(from, &request, QUEUE_TYPED);

	if (request.op == BLOCK_WRITE && !request.bytes)
		request.op = BLOCK_FLUSH;
	request_unseen(ts_block.lookup(&key));
	request_queued(&key, &request);
	if (flags & REQUEST_PREFLUSH_BIT) {
		key.request = 0;
		key.dev = request.dev;
		request_put(&key, &request);
	}
	return 0;
}
#endif

#ifndef BLOCK_QUEUE_START
/* A request that is issued already was put back by the driver: it keeps its thread. */
static inline void request_inserted(struct block_key *key, struct block_request *request)
{
	struct block_request *known = ts_block.lookup(key);

	if (!known || !known->issue_ns)
		request_queued(key, request);
}
#endif

#ifdef BLOCK_QUEUE_INSERT
RAW_TRACEPOINT_PROBE(block_rq_insert)
{
	struct request *from = (struct request *)ctx->args[BLOCK_ARGUMENT];
	struct block_key key = {.request = (__u64)from};
	struct block_request request = {};

	request_fill(from, &request, 0);
	request_inserted(&key, &request);
	return 0;
}
#endif

#ifdef BLOCK_QUEUE_TRACEPOINT
TRACEPOINT_PROBE(block, block_rq_insert)
{
	struct block_key key = {.request = args->sector, .dev = args->dev};
	struct block_request request = {.dev = args->dev,
					.bytes = event_bytes(args->bytes, args->nr_sector)};

	request.op = request_op_of(args->rwbs[0], args->rwbs[1]);
	request_inserted(&key, &request);
	return 0;
}
#endif
