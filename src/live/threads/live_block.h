/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to block devices that threads have in flight, for the columns io_dev to io_others.
 *
 *   block_queue, block_issue, block_done -> ts_block: requests in flight, with their threads
 *         at issue and completion -> histograms of blockq and block, with the CPU in their key
 *         copied at the scan time (live/sampler) -> live_block: the oldest request of each thread
 *   block_merge: a request that became part of another never completes; it is removed
 *
 * request_done() in bpf_text/block.bpf.c is where a request has ended and all of it is known. A
 * field of struct request is in a set (FIELDS_BLOCK, kernel/field_table.h): looked for only
 * where a planned probe reads it, and it may be lacking.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_BLOCK_H
#define TSNAP_LIVE_THREADS_LIVE_BLOCK_H

#include "base/index.h"
#include "maps/block_reader.h"
#include "sample/sample.h"

struct live_block {
	struct index oldest; /* kernel's tid to the index of its oldest request, plus one */
	int64_t of_ns;	     /* scan time of the requests */
	struct keyed users;  /* struct block_user at the scan time, each device's together */
};

/* Fills io_dev to io_others of a sample with the oldest request of the record's thread. flights:
 * requests in flight at now_ns, the same ones in each call for that time. */
void live_block_fill(struct live_block *block, const struct block_flights *flights,
		     const struct thread_state *record, int64_t now_ns, struct sample *sample);
void live_block_done(struct live_block *block);

/* Returns the word for block_request.op, for the column io_op. */
const char *block_op_name(uint32_t op);

#endif
