/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_queue */
#include "unit.h"
#include "live/sampler/capture_queue.h"

#define SMALL 64
#define LARGE 20000
#define BYTES_MOST (64u << 20)

static size_t bytes_of(const struct capture_queue *queue)
{
	size_t bytes = 0;

	for (int i = 0; i < CAPTURE_QUEUE_MAX; i++)
		bytes += live_capture_bytes(&queue->captures[i]);
	return bytes;
}

/* Fills the queue with scans of so many copies, which are not taken; returns their number. */
static unsigned int fill(struct capture_queue *queue, size_t copies)
{
	unsigned int scans = 0;
	bool stacks;

	for (; !capture_queue_is_full(queue); scans++) {
		struct live_capture *capture = capture_queue_has_capacity(queue, &stacks);

		capture->count = copies;
		capture_fit(capture);
		capture_queue_add(queue, capture);
	}
	return scans;
}

static unsigned int take_all(struct capture_queue *queue)
{
	struct live_capture *capture;
	unsigned int scans = 0;

	for (; (capture = capture_queue_take(queue)); scans++)
		capture_queue_return(queue, capture);
	return scans;
}

/* Buffers of scans with few threads are not all enlarged for scans with many. */
static void memory_has_a_bound(void **state)
{
	struct capture_queue *queue = calloc(1, sizeof(*queue));
	unsigned int scans;

	assert_non_null(queue);
	capture_queue_init(queue);
	assert_int_equal(fill(queue, SMALL), CAPTURE_QUEUE_MAX);
	assert_int_equal(take_all(queue), CAPTURE_QUEUE_MAX);
	scans = fill(queue, LARGE);
	assert_in_range(scans, 2, CAPTURE_QUEUE_MAX - 1);
	assert_true(bytes_of(queue) < BYTES_MOST);
	/* captures with that memory are used again, whichever was returned last */
	assert_int_equal(take_all(queue), scans);
	assert_in_range(fill(queue, LARGE), scans - 1, scans);
	assert_true(bytes_of(queue) < BYTES_MOST);
	capture_queue_done(queue);
	free(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
