/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_repeat: samples of sleepers that are repeated */
#include "unit.h"
#include "base/clock.h"
#include "live/context/live_context.h"
#include "live/live_repeat.h"

#include <sys/syscall.h>

#define NOW_NS (1000 * NS_PER_SECOND)
#define SLEPT_NS (2 * NS_PER_SECOND)

/* A thread that has slept for 2 s, and its sample as lookups filled it. */
struct scene {
	struct live_repeat repeat;
	struct live_context context;
	struct thread_state record;
	struct sample sample;
	bool compat;
};

static struct scene *scene_make(void)
{
	static struct scene scene;

	scene = (struct scene){
		.context = {.wants = {.needs = NEED_SYSCALL | NEED_TOTALS, .work = true},
			    .now.scan_time.now_ns = NOW_NS},
		.record = {.key = 3,
			   .identity = {.tid = 7, .tgid = 5, .comm = "worker", .known = 3},
			   .sched = {.tid = 7,
				     .known = SCHED_SWITCHED_OUT,
				     .state = 1,
				     .out_ns = NOW_NS - SLEPT_NS,
				     .sequence_done = 4}},
	};
	record_sample(&scene.record, &scene.context.now.scan_time, STATE_SLEEP, &scene.sample);
	scene.sample.syscall = "futex";
	scene.sample.waits_on = "lock held by 8";
	scene.sample.syscall_us = 2000007;
	scene.sample.cpu_us = 5;
	scene.context.lookup = lookup_new("/nowhere");
	return &scene;
}

static void scene_done(struct scene *scene)
{
	live_repeat_clear(&scene->repeat);
	lookup_free(scene->context.lookup);
}

static void keep(struct scene *scene)
{
	live_repeat_keep(&scene->repeat, &scene->context, &scene->record, &scene->sample,
			 scene->compat);
}

static bool report(struct scene *scene, struct sample *sample)
{
	return live_repeat_fill(&scene->repeat, &scene->context, &scene->record, STATE_SLEEP,
				sample);
}

static void sleepers_are_told_again(void **state)
{
	struct scene *scene = scene_make();
	struct sample sample;

	(void)state;
	assert_false(report(scene, &sample));
	keep(scene);
	scene->context.now.scan_time.now_ns += NS_PER_SECOND / 10;
	assert_true(report(scene, &sample));
	assert_string_equal(sample.syscall, "futex");
	assert_string_equal(sample.waits_on, "lock held by 8");
	assert_int_equal(sample.state_us, 2100000);
	assert_int_equal(sample.syscall_us, 2100007);
	assert_int_equal(sample.cpu_us, ABSENT); /* new values are left to the caller */
	scene->context.now.scan_time.now_ns += 2 * NS_PER_SECOND;
	assert_false(report(scene, &sample));
	scene_done(scene);
}

/* Samples are repeated no longer than the facts of the wait serve. */
static void sleepers_are_told_until_their_wait_is_read(void **state)
{
	struct scene *scene = scene_make();
	const struct lookup_hint hint = {.sequence = scene->record.sched.sequence_done};
	struct sample sample = scene->sample;
	int64_t until_ns;

	(void)state;
	sample.syscall_nr = SYS_futex;
	sample.kthread = 0;
	lookup_fill(scene->context.lookup, &sample, &hint, NEED_SYSCALL | NEED_WAITS, NOW_NS);
	until_ns = lookup_wait_until(scene->context.lookup, sample.tid, hint.sequence, 0);
	assert_true(until_ns > NOW_NS);
	scene->context.now.scan_time.now_ns = until_ns - 2;
	keep(scene);
	assert_true(report(scene, &sample));
	scene->context.now.scan_time.now_ns = until_ns;
	assert_false(report(scene, &sample));
	scene_done(scene);
}

static void change_needs(struct scene *scene)
{
	scene->context.wants.needs |= NEED_USER;
}

static void change_episode(struct scene *scene)
{
	scene->record.sched.sequence_done += 2;
}

static void change_name(struct scene *scene)
{
	memcpy(scene->record.identity.comm, "other", sizeof("other"));
}

static void change_thread(struct scene *scene)
{
	scene->record.identity.start_boot_ns += NS_PER_SECOND;
}

static void forget(struct scene *scene)
{
	scene->context.now.scan_time.now_ns += 3 * NS_PER_SECOND;
	live_repeat_sweep(&scene->repeat, &scene->context);
	scene->context.now.scan_time.now_ns -= 3 * NS_PER_SECOND;
}

static void others_are_looked_up(void **state)
{
	static void (*const changes[])(struct scene * scene) = {
		change_needs, change_episode, change_name, change_thread, forget,
	};
	struct sample sample;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct scene *scene = scene_make();

		keep(scene);
		assert_true(report(scene, &sample));
		changes[i](scene);
		if (report(scene, &sample))
			fail_msg("told again after change %zu", i);
		scene_done(scene);
	}
}

static void is_open(struct scene *scene)
{
	scene->sample.wait_open = true;
}

static void has_request(struct scene *scene)
{
	scene->sample.io_dev = "sda";
}

static void is_awake(struct scene *scene)
{
	scene->sample.state = STATE_RQ;
}

static void is_compat(struct scene *scene)
{
	scene->compat = true;
}

static void has_values(struct scene *scene)
{
	scene->context.wants.needs |= NEED_STATUS;
}

static void is_filtered(struct scene *scene)
{
	scene->context.wants.filter_needs |= NEED_TOTALS;
}

static void is_among_idle_ones(struct scene *scene)
{
	scene->context.wants.work = false;
}

static void is_in_container(struct scene *scene)
{
	scene->context.view.translated = true;
}

static void some_are_not_kept(void **state)
{
	static void (*const reasons[])(struct scene * scene) = {
		is_open,    has_request, is_awake,	  is_compat,
		has_values, is_filtered, is_in_container, is_among_idle_ones,
	};
	struct sample sample;

	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct scene *scene = scene_make();

		reasons[i](scene);
		keep(scene);
		if (report(scene, &sample))
			fail_msg("told again in spite of reason %zu", i);
		scene_done(scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleepers_are_told_again),
		cmocka_unit_test(sleepers_are_told_until_their_wait_is_read),
		cmocka_unit_test(others_are_looked_up),
		cmocka_unit_test(some_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
