/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request became part of another one, which now does its work, and is given back without ever
 * being completed: attempt_merge() in block/blk-merge.c, which calls elv_merge_requests() for all
 * requests but discards where there is no tracepoint.
 *
 * Knobs: BLOCK_MERGE_RAW or BLOCK_MERGE_KPROBE (elv_merge_requests).
 */

#ifdef BLOCK_MERGE_RAW
RAW_TRACEPOINT_PROBE(block_rq_merge)
{
	struct block_key key = {.request = ctx->args[BLOCK_ARGUMENT]};

	ts_block.delete(&key);
	return 0;
}
#endif

#ifdef BLOCK_MERGE_KPROBE
int kprobe__elv_merge_requests(struct pt_regs *ctx)
{
	struct block_key key = {.request = PT_REGS_PARM3(ctx)};

	ts_block.delete(&key);
	return 0;
}
#endif
