/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_repeat: samples of sleepers that are repeated */
#include "unit.h"
#include "base/clock.h"
#include "live/context/live_context.h"
#include "live/live_chains.h"
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
	struct chain_sleepers sleepers; /* of its chain */
	const char *chain;
	struct captured others[2];
	struct live_capture capture; /* of other threads */
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
		.sleepers.known = true,
		.chain = "complete",
		.capture = {.threads = scene.others, .listed = true},
	};
	scene.context.now.capture = &scene.capture;
	record_sample(&scene.record, &scene.context.now.scan_time, STATE_SLEEP, &scene.sample);
	scene.sample.call.name = "futex";
	scene.sample.wait.on = "lock held by 8";
	scene.sample.call.us = 2000007;
	scene.sample.sums.cpu_us = 5;
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

static struct repeated *find(struct scene *scene)
{
	return live_repeat_find(&scene->repeat, &scene->context, &scene->record, STATE_SLEEP);
}

static bool report(struct scene *scene, struct sample *sample)
{
	struct repeated *repeated = find(scene);

	return repeated &&
	       live_repeat_fill(&scene->context, &scene->record, STATE_SLEEP, repeated, sample);
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
	assert_string_equal(sample.call.name, "futex");
	assert_string_equal(sample.wait.on, "lock held by 8");
	assert_int_equal(sample.now.state_us, 2100000);
	assert_int_equal(sample.call.us, 2100007);
	assert_int_equal(sample.sums.cpu_us, ABSENT); /* new values are left to the caller */
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
	sample.call.nr = SYS_futex;
	sample.thread.kthread = 0;
	lookup_fill(scene->context.lookup, &sample, &hint, NEED_SYSCALL | NEED_WAITS, NOW_NS);
	until_ns = lookup_wait_until(scene->context.lookup, sample.thread.tid, hint.sequence, 0);
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
	scene->context.now.housekeeping = true;
	live_repeat_end_scan(&scene->repeat, &scene->context);
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
	scene->sample.wait.open = true;
}

static void has_request(struct scene *scene)
{
	scene->sample.io.dev = "sda";
}

static void is_awake(struct scene *scene)
{
	scene->sample.now.state = STATE_RQ;
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

/* Samples that were taken again. */
static struct sample taken[64];
static size_t taken_count;

static void take_again(void *to, const struct sample *sample)
{
	(void)to;
	assert_in_range(taken_count, 0, sizeof(taken) / sizeof(taken[0]) - 1);
	taken[taken_count++] = *sample;
}

/* A scene whose samples are summed up, and a scan of it that has the sample. */
static struct scene *summed_scene(uint64_t needs)
{
	static const struct source source = {.take_again = take_again};
	struct scene *scene = scene_make();

	scene->context.wants.needs |= needs;
	scene->context.period_ns = NS_PER_SECOND / 20;
	scene->repeat.source = &source;
	taken_count = 0;
	return scene;
}

/* One scan, 50 ms after the last: true if it has the sample. */
static bool scan(struct scene *scene, struct sample *sample)
{
	struct repeated *repeated;
	bool left_out;

	scene->context.now.scan_time.now_ns += scene->context.period_ns;
	live_repeat_begin_scan(&scene->repeat, &scene->context);
	repeated = find(scene);
	left_out = repeated && live_repeat_leaves_out(&scene->repeat) &&
		   live_repeat_leave_out(&scene->repeat, &scene->context, repeated, 50000);
	if (!left_out) {
		if (repeated && !live_repeat_fill(&scene->context, &scene->record, STATE_SLEEP,
						  repeated, sample))
			repeated = NULL;
		sample->scan.weight_us = 50000;
		if (!repeated) {
			record_sample(&scene->record, &scene->context.now.scan_time, STATE_SLEEP,
				      sample);
			sample->scan.weight_us = 50000;
			repeated = live_repeat_keep(&scene->repeat, &scene->context, &scene->record,
						    sample, false);
		}
		sample->sums.cpu_us = 9;
		sample->chain.text = scene->chain;
		live_repeat_given(&scene->repeat, &scene->context, repeated, sample,
				  &scene->sleepers);
	}
	live_repeat_end_scan(&scene->repeat, &scene->context);
	return !left_out;
}

/* Every scan counts once, in a sample that a scan has, or in one that is taken again. */
static void scans_that_leave_waits_out_count(void **state)
{
	static const uint64_t needs[] = {0, NEED_CHAIN};

	(void)state;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		struct scene *scene = summed_scene(needs[i]);
		int64_t weight_us = 0, count = 0, samples = 0;
		size_t last;
		struct sample sample;

		for (int at = 0; at < 50; at++) {
			if (!scan(scene, &sample))
				continue;
			samples++;
			weight_us += sample.scan.weight_us;
			count += 1 + sample.scan.repeats;
		}
		assert_in_range(samples, 4, 12);
		live_repeat_settle(&scene->repeat);
		last = taken_count - 1;
		live_repeat_settle(&scene->repeat);
		assert_int_equal(taken_count, last + 1);
		for (size_t at = 0; at < taken_count; at++) {
			weight_us += taken[at].scan.weight_us;
			count += 1 + taken[at].scan.repeats;
		}
		assert_int_equal(count, 50);
		assert_int_equal(weight_us, 50 * 50000);
		assert_string_equal(taken[last].chain.text, "complete");
		assert_int_equal(taken[last].sums.cpu_us, ABSENT); /* the sample had it */
		assert_int_equal(taken[last].now.state_us,
				 (scene->context.now.scan_time.now_ns - NOW_NS + SLEPT_NS) / 1000);
		scene_done(scene);
	}
}

/* Chains are followed again when the wait is a fifth longer. */
static void chains_are_followed_again(void **state)
{
	struct scene *scene = summed_scene(NEED_CHAIN);
	int64_t last_us = 0, left_out = 0, us;
	struct sample sample;

	(void)state;
	scene->record.sched.out_ns = NOW_NS;
	for (int at = 1; at <= 400; at++) {
		us = at * 50000;
		if (!scan(scene, &sample)) {
			left_out++;
			continue;
		}
		if (us - last_us > 50000 && us - last_us > us / 5)
			fail_msg("after %lld ms: last %lld ms before", (long long)us / 1000,
				 (long long)(us - last_us) / 1000);
		last_us = us;
	}
	assert_in_range(left_out, 320, 380);
	scene_done(scene);
}

/* A chain is followed again in the first scan after one of its threads was switched or woken. */
static void chains_that_change_are_followed(void **state)
{
	static struct thread_state other;
	struct scene *scene = summed_scene(NEED_CHAIN);
	struct sample sample;

	(void)state;
	other = (struct thread_state){
		.sched = {.tid = 8, .sequence_done = 6, .sequence_begun = 6, .out_ns = NOW_NS}};
	scene->context.kernel.table.mapped = &other;
	scene->context.kernel.table.mapped_bytes = sizeof(other);
	scene->sleepers = (struct chain_sleepers){
		.known = true, .count = 1, .sleepers = {{.key = 0, .tid = 8, .sequence = 6}}};
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	other.wake.wake_ns = NOW_NS + 1;
	assert_true(scan(scene, &sample));
	assert_int_equal(sample.scan.repeats, 1);
	other.sched.out_ns = NOW_NS + 2;
	assert_false(scan(scene, &sample));
	other.sched.sequence_done = other.sched.sequence_begun = 8;
	assert_true(scan(scene, &sample));
	scene->sleepers.sleepers[0].sequence = 8;
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	scene_done(scene);
}

static void capture(struct scene *scene, uint32_t key, uint32_t pid)
{
	scene->others[scene->capture.count++].record =
		(struct thread_state){.key = key, .identity.tgid = pid};
}

/* Begins a scan, 50 ms after the last. True if it passes the wait that rests. */
static bool passes(struct scene *scene, struct repeat_rest *rest)
{
	scene->context.now.scan_time.now_ns += scene->context.period_ns;
	live_repeat_begin_scan(&scene->repeat, &scene->context);
	return live_repeat_passes(&scene->repeat, &scene->context) &&
	       live_repeat_pass(&scene->repeat, &scene->context, rest, 50000);
}

/* Makes the wait rest that the scan has just begun with. */
static struct repeat_rest rest_of(struct scene *scene)
{
	struct repeated *repeated = find(scene);
	struct repeat_rest rest;
	uint32_t key;

	assert_true(live_repeat_leave_out(&scene->repeat, &scene->context, repeated, 50000));
	assert_true(live_repeat_rest(repeated, &key, &rest));
	assert_int_equal(key, scene->record.key);
	return rest;
}

/* A wait that rests is passed until something may change in it, and the scans that passed it
 * count. */
static void waits_rest(void **state)
{
	static struct thread_state other = {.sched = {.tid = 8}};
	struct scene *scene = summed_scene(NEED_CHAIN);
	struct repeat_rest rest;
	struct sample sample;

	(void)state;
	scene->context.kernel.table.mapped = &other;
	scene->context.kernel.table.mapped_bytes = sizeof(other);
	scene->sleepers = (struct chain_sleepers){
		.known = true, .pid = 40, .count = 1, .sleepers = {{.key = 0, .tid = 8}}};
	assert_true(scan(scene, &sample));
	scene->context.now.scan_time.now_ns += scene->context.period_ns;
	live_repeat_begin_scan(&scene->repeat, &scene->context);
	rest = rest_of(scene);
	capture(scene, 17, 41);
	assert_true(passes(scene, &rest));
	assert_true(passes(scene, &rest));
	assert_int_equal(rest.passed_count, 2);
	scene->context.now.housekeeping = true;
	assert_false(passes(scene, &rest)); /* all are visited */
	scene->context.now.housekeeping = false;
	/* a thread of the chain, or of the process at its end, was switched, or one may have been
	 */
	capture(scene, 0, 41);
	assert_false(passes(scene, &rest));
	scene->others[1].record.key = 18;
	assert_true(passes(scene, &rest));
	scene->others[1].record.identity.tgid = 40;
	assert_false(passes(scene, &rest));
	scene->capture.count = 0;
	scene->capture.gone = (uint32_t[]){0};
	scene->capture.gone_count = 1;
	assert_false(passes(scene, &rest));
	scene->capture.gone_count = 0;
	scene->capture.listed = false;
	assert_false(passes(scene, &rest));
	scene->capture.listed = true;
	assert_int_equal(rest.passed_count, 3);

	live_repeat_rest_settle(&scene->repeat, scene->record.key, &rest);
	assert_int_equal(rest.passed_count, 0);
	live_repeat_settle(&scene->repeat);
	assert_int_equal(taken_count, 1);
	assert_int_equal(taken[0].scan.repeats, 3); /* beside the one that left it out */
	assert_int_equal(taken[0].scan.weight_us, 4 * 50000);
	scene_done(scene);
}

/* Where nothing but its threads can change a chain, its wait rests from the start, until what it
 * waits for is to be read again. */
static void waits_with_firm_chains_rest_longer(void **state)
{
	struct scene *scene = summed_scene(NEED_CHAIN);
	struct repeat_rest rest;
	struct sample sample;
	int passed = 0;

	(void)state;
	scene->record.sched.out_ns = NOW_NS;
	scene->sleepers.firm = true;
	assert_true(scan(scene, &sample));
	for (int i = 0; i < 40; i++) {
		if (!passed) {
			scene->context.now.scan_time.now_ns += scene->context.period_ns;
			live_repeat_begin_scan(&scene->repeat, &scene->context);
			if (!live_repeat_leaves_out(&scene->repeat))
				continue;
			rest = rest_of(scene);
		}
		if (passes(scene, &rest))
			passed++;
		else
			break;
	}
	/* scans that visit all waits end it */
	assert_in_range(passed, 10, 16);
	rest.until_ns = scene->context.now.scan_time.now_ns;
	assert_false(passes(scene, &rest));
	scene_done(scene);
}

/* Scans that left a wait out had it as the earlier sample has it, if a switch has changed its chain
 * since; if another lookup found the change, half of them did. */
static void changes_are_shared_out(void **state)
{
	static struct thread_state other;

	(void)state;
	for (int switched = 0; switched < 2; switched++) {
		struct scene *scene = summed_scene(NEED_CHAIN);
		struct sample sample;
		int count = 0;

		other = (struct thread_state){
			.sched = {.tid = 8, .sequence_done = 6, .sequence_begun = 6}};
		scene->context.kernel.table.mapped = &other;
		scene->context.kernel.table.mapped_bytes = sizeof(other);
		scene->sleepers =
			(struct chain_sleepers){.known = true,
						.count = 1,
						.sleepers = {{.key = 0, .tid = 8, .sequence = 6}}};
		assert_true(scan(scene, &sample));
		for (int i = 0; i < 4; i++)
			assert_false(scan(scene, &sample));
		if (switched)
			other.sched.sequence_done = other.sched.sequence_begun = 8;
		scene->chain = "another";
		while (!scan(scene, &sample))
			count++;
		assert_int_equal(taken_count, 1);
		assert_string_equal(taken[0].chain.text, "complete");
		assert_int_equal(taken[0].scan.repeats + 1, switched ? 4 : (4 + count + 1) / 2);
		assert_int_equal(sample.scan.repeats, switched ? 0 : (4 + count) / 2);
		scene_done(scene);
	}
}

/* What scans left out of a wait is handed over when the thread's next wait is kept, or some scans
 * after its end. */
static void waits_that_ended_count(void **state)
{
	struct scene *scene = summed_scene(0);
	struct sample sample;

	(void)state;
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	scene->record.sched.sequence_done += 2;
	assert_true(scan(scene, &sample));
	assert_int_equal(sample.scan.repeats, 0);
	assert_int_equal(taken_count, 1);
	assert_int_equal(taken[0].scan.repeats, 1);
	assert_int_equal(taken[0].scan.weight_us, 100000);
	assert_false(scan(scene, &sample));
	scene->context.now.scan_time.now_ns += NS_PER_SECOND;
	live_repeat_begin_scan(&scene->repeat, &scene->context);
	live_repeat_end_scan(&scene->repeat, &scene->context);
	assert_int_equal(taken_count, 2);
	assert_int_equal(taken[1].scan.weight_us, 50000);
	scene->context.now.housekeeping = true;
	live_repeat_end_scan(&scene->repeat, &scene->context);
	assert_int_equal(taken_count, 2);
	scene_done(scene);
}

/* A filter of chains or stacks may refuse a sample late: then scans leave out nothing of it. */
static void refused_samples_do_not_count(void **state)
{
	struct scene *scene = summed_scene(0);
	struct repeated *repeated;
	struct sample sample;

	(void)state;
	assert_true(scan(scene, &sample));
	sample.thread.tid = ABSENT;
	repeated = find(scene);
	assert_true(live_repeat_fill(&scene->context, &scene->record, STATE_SLEEP, repeated,
				     &scene->sample));
	live_repeat_given(&scene->repeat, &scene->context, repeated, &sample, NULL);
	assert_false(scan(scene, &sample));
	live_repeat_settle(&scene->repeat);
	assert_int_equal(taken_count, 0);
	scene_done(scene);
}

/* Nothing is left out where stacks are read, where rows are wanted, at a low rate, and while the
 * end of a chain is not known. */
static void others_leave_nothing_out(void **state)
{
	static const struct source rows = {.take_again = NULL};
	struct sample sample;

	(void)state;
	for (int reason = 0; reason < 5; reason++) {
		struct scene *scene = summed_scene(NEED_CHAIN | (reason == 0 ? NEED_STACK : 0));

		if (reason == 1)
			scene->repeat.source = &rows;
		if (reason == 2)
			scene->context.period_ns = NS_PER_SECOND;
		if (reason == 3)
			scene->sleepers.known = false;
		if (reason == 4)
			scene->context.wants.needs ^= NEED_CHAIN | NEED_BLOCKER;
		for (int at = 0; at < 20; at++)
			assert_true(scan(scene, &sample));
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
		cmocka_unit_test(scans_that_leave_waits_out_count),
		cmocka_unit_test(chains_are_followed_again),
		cmocka_unit_test(chains_that_change_are_followed),
		cmocka_unit_test(waits_rest),
		cmocka_unit_test(waits_with_firm_chains_rest_longer),
		cmocka_unit_test(changes_are_shared_out),
		cmocka_unit_test(waits_that_ended_count),
		cmocka_unit_test(refused_samples_do_not_count),
		cmocka_unit_test(others_leave_nothing_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
