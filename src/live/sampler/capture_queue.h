/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of captures, from the thread that copies to the one that makes samples, oldest first, and
 * memory for more. It takes no lock: its user does that. */
#ifndef TSNAP_LIVE_SAMPLER_CAPTURE_QUEUE_H
#define TSNAP_LIVE_SAMPLER_CAPTURE_QUEUE_H

#include "live/sampler/live_capture.h"

#define CAPTURE_QUEUE_MAX 128 /* scans */

struct capture_queue {
	struct live_capture captures[CAPTURE_QUEUE_MAX];
	struct live_capture *filled[CAPTURE_QUEUE_MAX], *unused[CAPTURE_QUEUE_MAX];
	unsigned int first, filled_count, unused_count;
	size_t most; /* most copies in one of the last scans */
};

/* Makes a zeroed queue ready for use. */
void capture_queue_init(struct capture_queue *queue);
void capture_queue_done(struct capture_queue *queue);

/* Returns how many captures are being filled, wait, or are made samples of. */
unsigned int capture_queue_outstanding(const struct capture_queue *queue);
/* True if there is no unused capture, or no memory for what is probably copied into it. */
bool capture_queue_is_full(struct capture_queue *queue);

/* Returns an unused capture of a queue that is not full. *stacks_capacity: there is memory for its
 * stacks, too. */
struct live_capture *capture_queue_has_capacity(struct capture_queue *queue, bool *stacks_capacity);
void capture_queue_add(struct capture_queue *queue, struct live_capture *capture);
/* Takes the oldest capture. NULL: there is none. */
struct live_capture *capture_queue_take(struct capture_queue *queue);
/* Gives back a capture of capture_queue_has_capacity(), or of capture_queue_take() when it is done
 * with. */
void capture_queue_return(struct capture_queue *queue, struct live_capture *capture);

/* Resizes the memory of a capture that was taken, for as many copies as it has, and some more: the
 * thread that copies then need not get or free any. */
void capture_fit(struct live_capture *capture);
/* Takes out memory that is too much while no scan waits, for live_capture_done() without a lock. */
struct live_capture capture_queue_surplus(struct capture_queue *queue);

#endif
