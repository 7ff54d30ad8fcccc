/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request became part of another one and is given back, without ever being completed: what it was
 * to do is that one's now. attempt_merge() in block/blk-merge.c.
 */

RAW_TRACEPOINT_PROBE(block_rq_merge)
{
	struct block_key key = {.request = ctx->args[BLOCK_ARGUMENT]};

	ts_block.delete(&key);
	return 0;
}
