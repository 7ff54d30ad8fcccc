/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/sampler/capture_queue.h"
#include "base/memory.h"

#include <stdlib.h>

#define QUEUE_BYTES ((size_t)32 << 20)
#define STACKS_BYTES (QUEUE_BYTES / 2) /* limit from which on scans do without most stacks */
#define CAPACITY_KEPT 2		       /* scans of which the memory stays while no scan waits */
#define MORE_LEAST 64
#define MUCH_MORE 8   /* times as much memory as a scan needed is freed */
#define MOST_FADES 16 /* part of capture_queue.most that is forgotten with each scan */

void capture_queue_init(struct capture_queue *queue)
{
	for (int i = CAPTURE_QUEUE_MAX - 1; i >= 0; i--)
		queue->unused[queue->unused_count++] = &queue->captures[i];
}

void capture_queue_done(struct capture_queue *queue)
{
	for (int i = 0; i < CAPTURE_QUEUE_MAX; i++)
		live_capture_done(&queue->captures[i]);
}

unsigned int capture_queue_outstanding(const struct capture_queue *queue)
{
	return CAPTURE_QUEUE_MAX - queue->unused_count;
}

static size_t captures_bytes(const struct capture_queue *queue)
{
	size_t bytes = 0;

	for (int i = 0; i < CAPTURE_QUEUE_MAX; i++)
		bytes += live_capture_bytes(&queue->captures[i]);
	return bytes;
}

/* Returns the capture that is used next: with memory for as many copies as there probably are, or
 * with the most that any has. */
static const struct live_capture *next_find(struct capture_queue *queue)
{
	struct live_capture **next = &queue->unused[queue->unused_count - 1];

	for (unsigned int i = 0; i < queue->unused_count && (*next)->capacity < queue->most; i++) {
		struct live_capture *other = queue->unused[i];

		if (other->capacity > (*next)->capacity) {
			queue->unused[i] = *next;
			*next = other;
		}
	}
	return *next;
}

bool capture_queue_is_full(struct capture_queue *queue)
{
	const struct live_capture *next;

	if (!capture_queue_outstanding(queue))
		return false;
	if (!queue->unused_count)
		return true;
	/* a capture of a smaller scan has memory, too, but must get more */
	next = next_find(queue);
	return next->capacity < queue->most &&
	       captures_bytes(queue) + (queue->most - next->capacity) * sizeof(struct captured) >
		       QUEUE_BYTES;
}

struct live_capture *capture_queue_has_capacity(struct capture_queue *queue, bool *stacks_capacity)
{
	struct live_capture *capture = queue->unused[--queue->unused_count];

	*stacks_capacity = capture_queue_outstanding(queue) <= 1 || capture->kept.capacity ||
			   captures_bytes(queue) < STACKS_BYTES;
	return capture;
}

void capture_queue_add(struct capture_queue *queue, struct live_capture *capture)
{
	queue->most -= queue->most / MOST_FADES;
	if (capture->count > queue->most)
		queue->most = capture->count;
	queue->filled[(queue->first + queue->filled_count++) % CAPTURE_QUEUE_MAX] = capture;
}

struct live_capture *capture_queue_take(struct capture_queue *queue)
{
	struct live_capture *capture = queue->filled[queue->first];

	if (!queue->filled_count)
		return NULL;
	queue->first = (queue->first + 1) % CAPTURE_QUEUE_MAX;
	queue->filled_count--;
	return capture;
}

void capture_queue_return(struct capture_queue *queue, struct live_capture *capture)
{
	queue->unused[queue->unused_count++] = capture;
}

void capture_fit(struct live_capture *capture)
{
	size_t enough = capture->count + capture->count / 4 + MORE_LEAST;

	if (!capture->whole && capture->capacity > MUCH_MORE * enough) {
		free(capture->threads);
		capture->threads = NULL;
		capture->capacity = 0;
	}
	capture->threads = memory_grow(capture->threads, &capture->capacity, enough,
				       sizeof(*capture->threads));
}

struct live_capture capture_queue_surplus(struct capture_queue *queue)
{
	struct live_capture surplus = {0};

	if (capture_queue_outstanding(queue) > 1) /* usually one is being filled */
		return surplus;
	for (unsigned int i = 0; i < CAPTURE_QUEUE_MAX - CAPACITY_KEPT && !surplus.capacity; i++) {
		surplus = *queue->unused[i];
		*queue->unused[i] = (struct live_capture){0};
	}
	return surplus;
}
