/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_asleep: copies of the records of sleepers, from scan to scan */
#include "unit.h"
#include "base/index.h"
#include "live/live_asleep.h"

#include <stdlib.h>

struct scene {
	struct live_asleep asleep;
	struct live_capture capture;
	struct index wanted;
};

static void scene_done(struct scene *scene)
{
	live_asleep_done(&scene->asleep);
	index_clear(&scene->wanted);
	free(scene->capture.threads);
	free(scene->capture.gone);
}

/* Captures threads with these keys, 0 ends them; state: bits of the kernel's, 0: runnable. */
static void capture(struct scene *scene, const uint32_t *keys, uint32_t state)
{
	struct live_capture *capture = &scene->capture;

	if (!capture->threads) {
		capture->capacity = 8;
		capture->threads = calloc(capture->capacity, sizeof(*capture->threads));
		capture->gone = calloc(1, sizeof(*capture->gone));
	}
	capture->count = capture->gone_count = 0;
	for (; *keys; keys++)
		capture->threads[capture->count++] =
			(struct captured){.record = {.key = *keys,
						     .sched = {.tid = *keys + 100,
							       .state = state,
							       .out_ns = 5,
							       .in_ns = 4,
							       .sequence_done = 2,
							       .known = SCHED_SWITCHED_OUT}}};
}

static void want(struct scene *scene, const uint32_t *keys)
{
	index_empty(&scene->wanted);
	for (; *keys; keys++)
		index_put(&scene->wanted, *keys, NULL);
}

static void scan(struct scene *scene, const struct index *wanted)
{
	live_asleep_begin(&scene->asleep, &scene->capture);
	live_asleep_end(&scene->asleep, &scene->capture, wanted, 1);
}

static void all_that_sleep_are_kept(void **state)
{
	struct scene scene = {0};

	(void)state;
	capture(&scene, (const uint32_t[]){1, 2, 3, 0}, 1);
	scene.capture.threads[1].moved = true; /* it may have slept since the moment only */
	scan(&scene, NULL);
	assert_int_equal(scene.asleep.count, 2);
	assert_true(live_asleep_has(&scene.asleep, 1));
	assert_false(live_asleep_has(&scene.asleep, 2));
	assert_true(live_asleep_has(&scene.asleep, 3));
	capture(&scene, (const uint32_t[]){3, 0}, 0); /* runnable now */
	scan(&scene, NULL);
	assert_int_equal(scene.asleep.count, 1);
	capture(&scene, (const uint32_t[]){0}, 0);
	scene.capture.gone[scene.capture.gone_count++] = 1;
	scan(&scene, NULL);
	assert_int_equal(scene.asleep.count, 0);
	scene_done(&scene);
}

static void only_wanted_ones_are_kept(void **state)
{
	struct scene scene = {0};

	(void)state;
	want(&scene, (const uint32_t[]){1, 3, 0});
	capture(&scene, (const uint32_t[]){1, 2, 3, 0}, 1);
	scan(&scene, &scene.wanted);
	assert_true(live_asleep_has(&scene.asleep, 1));
	assert_false(live_asleep_has(&scene.asleep, 2));
	assert_true(live_asleep_has(&scene.asleep, 3));
	want(&scene, (const uint32_t[]){3, 4, 0});
	capture(&scene, (const uint32_t[]){0}, 0);
	scan(&scene, &scene.wanted);
	assert_int_equal(scene.asleep.count, 1); /* 4 was not captured, 1 is not wanted any more */
	assert_true(live_asleep_has(&scene.asleep, 3));
	scene_done(&scene);
}

static void walks_find_what_has_changed_or_gone(void **state)
{
	struct scene scene = {0};
	struct thread_state record;
	bool later;

	(void)state;
	capture(&scene, (const uint32_t[]){1, 2, 0}, 1);
	record = scene.capture.threads[0].record;
	scan(&scene, NULL);
	assert_true(live_asleep_seen(&scene.asleep, &record, 1, 2, &later));
	assert_false(later);
	record.sched.sequence_done += 2;
	assert_true(live_asleep_seen(&scene.asleep, &record, 1, 2, &later));
	assert_true(later);
	assert_false(live_asleep_seen(&scene.asleep, &record, 7, 2, &later));
	live_asleep_sweep(&scene.asleep, 2); /* the walk did not meet 2 */
	assert_true(live_asleep_has(&scene.asleep, 1));
	assert_false(live_asleep_has(&scene.asleep, 2));
	scene_done(&scene);
}

static void a_capture_of_all_replaces_them(void **state)
{
	struct scene scene = {0};

	(void)state;
	capture(&scene, (const uint32_t[]){1, 2, 0}, 1);
	scan(&scene, NULL);
	capture(&scene, (const uint32_t[]){2, 5, 0}, 1);
	scene.capture.whole = true;
	scan(&scene, NULL);
	assert_int_equal(scene.asleep.count, 2);
	assert_true(live_asleep_has(&scene.asleep, 2));
	assert_true(live_asleep_has(&scene.asleep, 5));
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_sleep_are_kept),
		cmocka_unit_test(only_wanted_ones_are_kept),
		cmocka_unit_test(walks_find_what_has_changed_or_gone),
		cmocka_unit_test(a_capture_of_all_replaces_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
