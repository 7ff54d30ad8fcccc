/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of sleepers from scan to scan: those that come, those that go, and those that a walk does
 * not meet */
#include "unit.h"
#include "base/memory.h"
#include "live/live_asleep.h"

#include <stdlib.h>

#define INTERRUPTIBLE 0x1

static struct thread_state record_of(uint32_t key, uint32_t state, uint64_t sequence)
{
	return (struct thread_state){
		.sched = {.sequence_done = sequence,
			  .out_ns = 10,
			  .in_ns = 5,
			  .known = SCHED_SWITCHED_OUT,
			  .state = state,
			  .tid = 100 + key},
		.identity = {.tid = 100 + key, .tgid = 100, .known = IDENTITY_NAME},
		.key = key,
	};
}

static void copy_add(struct live_capture *capture, uint32_t key, uint32_t state)
{
	capture->threads = memory_grow(capture->threads, &capture->capacity, capture->count + 1,
				       sizeof(*capture->threads));
	capture->threads[capture->count++] = (struct captured){.record = record_of(key, state, 1)};
}

static uint32_t keys_of(const struct live_asleep *asleep)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < asleep->count; i++)
		bits |= 1u << asleep->copies[i].record.key;
	return bits;
}

static void scan(struct live_asleep *asleep, struct live_capture *capture, unsigned int round)
{
	live_asleep_begin(asleep, capture);
	live_asleep_end(asleep, capture, NULL, round);
	capture->count = capture->gone_count = 0;
	capture->whole = false;
}

static void who_was_woken_comes_and_goes(void **state)
{
	struct live_asleep asleep = {0};
	struct live_capture capture = {.whole = true};
	uint32_t gone[] = {2};

	(void)state;
	for (uint32_t key = 0; key < 5; key++)
		copy_add(&capture, key, key == 1 ? 0 : INTERRUPTIBLE); /* 1 is runnable */
	scan(&asleep, &capture, 1);
	assert_int_equal(keys_of(&asleep), 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4);

	copy_add(&capture, 1, INTERRUPTIBLE);
	copy_add(&capture, 0, 0);
	copy_add(&capture, 4, INTERRUPTIBLE);
	/* changed after the scan time: its state at present is not known */
	capture.threads[2].moved = true;
	capture.gone = gone;
	capture.gone_count = 1;
	live_asleep_begin(&asleep, &capture);
	assert_int_equal(keys_of(&asleep), 1 << 3); /* the others are in the capture */
	live_asleep_end(&asleep, &capture, NULL, 1);
	assert_int_equal(keys_of(&asleep), 1 << 1 | 1 << 3);
	capture.count = capture.gone_count = 0;

	copy_add(&capture, 7, INTERRUPTIBLE);
	capture.whole = true;
	scan(&asleep, &capture, 1);
	assert_int_equal(keys_of(&asleep), 1 << 7);
	free(capture.threads);
	live_asleep_done(&asleep);
}

static void only_wanted_ones_stay(void **state)
{
	struct live_asleep asleep = {0};
	struct live_capture capture = {0};
	struct index wanted = {0};

	(void)state;
	index_put(&wanted, 1, NULL);
	index_put(&wanted, 3, NULL);
	for (uint32_t key = 0; key < 4; key++)
		copy_add(&capture, key, INTERRUPTIBLE);
	live_asleep_end(&asleep, &capture, &wanted, 1);
	assert_int_equal(keys_of(&asleep), 1 << 1 | 1 << 3);
	assert_true(live_asleep_has(&asleep, 3));
	assert_false(live_asleep_has(&asleep, 2));

	capture.count = 0;
	index_remove(&wanted, 1);
	index_put(&wanted, 2, NULL); /* record 2 is not in this capture */
	live_asleep_end(&asleep, &capture, &wanted, 1);
	assert_int_equal(keys_of(&asleep), 1 << 3);
	free(capture.threads);
	index_clear(&wanted);
	live_asleep_done(&asleep);
}

static void what_a_walk_does_not_meet_is_gone(void **state)
{
	struct live_asleep asleep = {0};
	struct live_capture capture = {.whole = true};
	struct thread_state record;
	bool later;

	(void)state;
	for (uint32_t key = 0; key < 4; key++)
		copy_add(&capture, key, INTERRUPTIBLE);
	scan(&asleep, &capture, 1);
	record = record_of(0, INTERRUPTIBLE, 1);
	assert_true(live_asleep_seen(&asleep, &record, 0, 2, &later));
	assert_false(later);
	record = record_of(3, INTERRUPTIBLE, 9);
	assert_true(live_asleep_seen(&asleep, &record, 3, 2, &later));
	assert_true(later);
	record = record_of(6, INTERRUPTIBLE, 1);
	assert_false(live_asleep_seen(&asleep, &record, 6, 2, &later));
	copy_add(&capture, 2, INTERRUPTIBLE);
	scan(&asleep, &capture, 2); /* the copy came during the walk */
	live_asleep_sweep(&asleep, 2);
	assert_int_equal(keys_of(&asleep), 1 << 0 | 1 << 2 | 1 << 3);
	live_asleep_drop(&asleep, 3);
	live_asleep_drop(&asleep, 3);
	assert_int_equal(keys_of(&asleep), 1 << 0 | 1 << 2);
	free(capture.threads);
	live_asleep_done(&asleep);
}

static void rest(struct live_asleep *asleep, size_t slot, uint32_t passed)
{
	asleep->rests[slot] = (struct repeat_rest){
		.until_ns = 1, .passed_count = passed, .passed = passed, .key_count = passed};
}

/* A rest stays with its copy when others are dropped, and ends with it. */
static void copies_that_rest_stay(void **state)
{
	struct live_asleep asleep = {0};
	struct live_capture capture = {.whole = true};
	struct live_repeat repeat = {0};
	struct index wanted = {0};

	(void)state;
	for (uint32_t key = 0; key < 4; key++)
		copy_add(&capture, key, INTERRUPTIBLE);
	scan(&asleep, &capture, 1);
	asleep.repeat = &repeat;
	asleep.rests = memory_get(3 * sizeof(*asleep.rests));
	asleep.rest_capacity = 3;
	rest(&asleep, 1, 1);
	rest(&asleep, 2, 2);
	assert_null(live_asleep_rest_of(&asleep, 0));
	assert_null(live_asleep_rest_of(&asleep, 3)); /* beyond the memory */
	live_asleep_drop(&asleep, 3);
	live_asleep_drop(&asleep, 1); /* copy 2 is in its slot by now */
	assert_int_equal(live_asleep_rest_of(&asleep, 1)->key_count, 2);
	assert_null(live_asleep_rest_of(&asleep, 2));

	/* the scan that has passed a copy wants it; the next one visits it, and does not */
	live_asleep_end(&asleep, &capture, &wanted, 1);
	assert_int_equal(keys_of(&asleep), 1 << 2);
	assert_int_equal(live_asleep_rest_of(&asleep, 0)->key_count, 2);
	live_asleep_end(&asleep, &capture, &wanted, 1);
	assert_int_equal(keys_of(&asleep), 0);
	assert_null(live_asleep_rest_of(&asleep, 0));
	free(capture.threads);
	live_asleep_done(&asleep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_woken_comes_and_goes),
		cmocka_unit_test(only_wanted_ones_stay),
		cmocka_unit_test(what_a_walk_does_not_meet_is_gone),
		cmocka_unit_test(copies_that_rest_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
