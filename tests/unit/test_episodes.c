/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait episodes: when they begin, go on and end, the samples that they keep, and the scans that
 * leave them out */
#include "unit.h"
#include "base/clock.h"
#include "live/context/live_context.h"
#include "live/scan/episodes.h"

#include <stdlib.h>
#include <sys/syscall.h>

#define NOW_NS (1000 * NS_PER_SECOND)
#define SLEPT_NS (2 * NS_PER_SECOND)
#define KEYS 8
#define KEY 3 /* the record of the thread that has slept for 2 s */

struct scene {
	struct episodes episodes;
	struct live_context context;
	struct thread_state records[KEYS]; /* the kernel's map */
	struct captured captured[KEYS];
	uint32_t gone[KEYS];
	struct live_capture capture;
	uint32_t round;
	struct sample sample; /* of that thread, as lookups filled it */
	bool compat;
	struct chain_sleepers sleepers; /* of its chain */
	const char *chain;
};

static struct thread_state record_of(uint32_t key, int64_t out_ns)
{
	return (struct thread_state){
		.key = key,
		.identity = {.tid = 100 + key, .tgid = 100, .comm = "worker", .known = 3},
		.sched = {.tid = 100 + key,
			  .known = SCHED_SWITCHED_OUT,
			  .state = 1,
			  .out_ns = (uint64_t)out_ns,
			  .sequence_begun = 4,
			  .sequence_done = 4},
	};
}

static struct scene *scene_make(void)
{
	static struct scene scene;

	scene = (struct scene){
		.context = {.wants = {.needs = NEED_SYSCALL | NEED_TOTALS, .work = true},
			    .now.scan_time.now_ns = NOW_NS,
			    .period_ns = NS_PER_SECOND / 20},
		.capture = {.threads = scene.captured, .gone = scene.gone, .listed = true},
		.sleepers.known = true,
		.chain = "complete",
	};
	for (uint32_t key = 0; key < KEYS; key++)
		scene.records[key] = record_of(key, NOW_NS - SLEPT_NS);
	scene.context.now.capture = &scene.capture;
	scene.context.kernel.table.mapped = scene.records;
	scene.context.kernel.table.mapped_bytes = sizeof(scene.records);
	record_sample(&scene.records[KEY], &scene.context.now.scan_time, STATE_SLEEP,
		      &scene.sample);
	scene.sample.call.name = "futex";
	scene.sample.wait.on = "lock held by 8";
	scene.sample.call.us = 2000007;
	scene.sample.sums.cpu_us = 5;
	scene.context.lookup = lookup_new("/nowhere");
	return &scene;
}

static void scene_done(struct scene *scene)
{
	episodes_clear(&scene->episodes);
	lookup_free(scene->context.lookup);
}

static void capture_copy(struct scene *scene, uint32_t key)
{
	scene->captured[scene->capture.count++] = (struct captured){.record = scene->records[key]};
}

static void scan_begin(struct scene *scene)
{
	scene->context.now.scan_time.now_ns += scene->context.period_ns;
	episodes_begin_scan(&scene->episodes, &scene->context, scene->round);
}

static void scan_end(struct scene *scene, bool round_ended)
{
	episodes_end_scan(&scene->episodes, &scene->context, round_ended);
	scene->capture.count = scene->capture.gone_count = 0;
	scene->capture.whole = false;
}

static uint32_t keys_of(const struct scene *scene)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < scene->episodes.count; i++)
		bits |= 1u << scene->episodes.all[i]->copy.record.key;
	return bits;
}

/* Where all are wanted, each captured sleeper has an episode, until a capture shows it to be over.
 */
static void episodes_begin_and_end(void **state)
{
	struct scene *scene = scene_make();

	scene->context.wants.idle = true;
	scene->records[1].sched.state = 0;
	for (uint32_t key = 0; key < 5; key++)
		capture_copy(scene, key);
	scene->capture.whole = true;
	scan_begin(scene);
	scan_end(scene, false);
	assert_int_equal(keys_of(scene), 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4);

	scene->records[1].sched.state = 1;
	scene->records[0].sched.state = 0;
	for (uint32_t key = 0; key < 5; key++)
		if (key == 0 || key == 1 || key == 4)
			capture_copy(scene, key);
	/* changed after the scan time: its state at present is not known */
	scene->captured[2].moved = true;
	scene->gone[scene->capture.gone_count++] = 2;
	scan_begin(scene);
	scan_end(scene, false);
	assert_int_equal(keys_of(scene), 1 << 1 | 1 << 3);

	capture_copy(scene, 7);
	scene->capture.whole = true;
	scan_begin(scene);
	scan_end(scene, false);
	assert_int_equal(keys_of(scene), 1 << 7);
	scene_done(scene);
}

/* An episode goes on if its record was captured again without a switch, such as after a walk. */
static void captured_again_is_the_same(void **state)
{
	struct scene *scene = scene_make();
	struct episode *episode;

	episode = episodes_want(&scene->episodes, &scene->context, &scene->records[KEY]);
	assert_true(
		episode_keep(&scene->episodes, &scene->context, episode, &scene->sample, false));
	capture_copy(scene, KEY);
	scan_begin(scene);
	assert_ptr_equal(episodes_find(&scene->episodes, KEY), episode);
	assert_non_null(episode->samples);
	scene->capture.count = 0;
	memcpy(scene->records[KEY].identity.comm, "other", sizeof("other"));
	capture_copy(scene, KEY);
	scan_begin(scene);
	assert_null(episodes_find(&scene->episodes, KEY));
	scene_done(scene);
}

static void only_wanted_ones_stay(void **state)
{
	struct scene *scene = scene_make();

	scan_begin(scene);
	for (uint32_t key = 1; key < 5; key++)
		episodes_want(&scene->episodes, &scene->context, &scene->records[key]);
	/* woken since it was captured; on its CPU; without a record in the map */
	scene->records[5].wake.wake_ns = NOW_NS;
	episodes_want(&scene->episodes, &scene->context, &scene->records[5]);
	scene->records[6].sched.on_cpu = 1;
	episodes_want(&scene->episodes, &scene->context, &scene->records[6]);
	scene->records[7].sched.tid = 0;
	episodes_want(&scene->episodes, &scene->context, &scene->records[7]);
	scan_end(scene, false);
	assert_int_equal(keys_of(scene), 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4);

	scan_begin(scene);
	episodes_want(&scene->episodes, &scene->context, &scene->records[4]);
	scan_end(scene, false);
	assert_int_equal(keys_of(scene), 1 << 4);
	scene_done(scene);
}

/* Where the changed list has lost records, each episode is compared with the kernel's map. */
static void lost_changes_end_episodes(void **state)
{
	struct scene *scene = scene_make();

	scene->context.wants.idle = true;
	for (uint32_t key = 1; key < 4; key++)
		episodes_want(&scene->episodes, &scene->context, &scene->records[key]);
	scene->records[2].sched.sequence_begun = scene->records[2].sched.sequence_done = 6;
	scene->capture.listed = false;
	scan_begin(scene);
	assert_int_equal(keys_of(scene), 1 << 1 | 1 << 3);
	scene_done(scene);
}

static void what_a_walk_does_not_meet_is_gone(void **state)
{
	struct scene *scene = scene_make();
	bool later;

	scene->context.wants.idle = true;
	scene->round = 1;
	for (uint32_t key = 0; key < 4; key++)
		capture_copy(scene, key);
	scan_begin(scene);
	scan_end(scene, false);
	scene->round = 2;
	capture_copy(scene, 2); /* the copy comes during the walk */
	scan_begin(scene);
	assert_true(episodes_met(&scene->episodes, &scene->records[0], 0, &later));
	assert_false(later);
	scene->records[3].sched.sequence_done = 9;
	assert_true(episodes_met(&scene->episodes, &scene->records[3], 3, &later));
	assert_true(later);
	assert_false(episodes_met(&scene->episodes, &scene->records[6], 6, &later));
	scan_end(scene, true);
	assert_int_equal(keys_of(scene), 1 << 0 | 1 << 2 | 1 << 3);
	episodes_end(&scene->episodes, 3);
	episodes_end(&scene->episodes, 3);
	assert_int_equal(keys_of(scene), 1 << 0 | 1 << 2);
	scene_done(scene);
}

static struct episode *keep(struct scene *scene)
{
	struct episode *episode =
		episodes_want(&scene->episodes, &scene->context, &scene->records[KEY]);

	episode_keep(&scene->episodes, &scene->context, episode, &scene->sample, scene->compat);
	return episode;
}

static bool report(struct scene *scene, struct sample *sample)
{
	struct episode *episode = episodes_find(&scene->episodes, KEY);

	return episode && episode_fill(&scene->context, episode, sample);
}

static void sleepers_are_told_again(void **state)
{
	struct scene *scene = scene_make();
	struct sample sample;

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
	const struct lookup_hint hint = {.sequence = scene->records[KEY].sched.sequence_done};
	struct sample sample = scene->sample;
	int64_t until_ns;

	sample.call.nr = SYS_futex;
	sample.thread.kthread = 0;
	lookup_fill(scene->context.lookup, &sample, &hint, NEED_SYSCALL | NEED_WAITS, NOW_NS);
	until_ns = waits_until(lookup_waits(scene->context.lookup), sample.thread.tid,
			       hint.sequence, 0);
	assert_true(until_ns > NOW_NS);
	scene->context.now.scan_time.now_ns = until_ns - 2;
	keep(scene);
	assert_true(report(scene, &sample));
	scene->context.now.scan_time.now_ns = until_ns;
	assert_false(report(scene, &sample));
	scene_done(scene);
}

static void is_open(struct scene *scene)
{
	scene->sample.wait.open = true;
}

static void has_request(struct scene *scene)
{
	scene->sample.io.dev = "sda";
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
		is_open,     has_request,     is_compat,	  has_values,
		is_filtered, is_in_container, is_among_idle_ones,
	};
	struct sample sample;

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

static int batch_take(void *to, const struct scan *batch)
{
	assert_true(batch->again);
	assert_int_equal(batch->count, 1);
	assert_in_range(taken_count, 0, sizeof(taken) / sizeof(taken[0]) - 1);
	taken[taken_count++] = batch->samples[0];
	return 0;
}

/* A scene whose samples are summed up. */
static struct scene *summed_scene(uint64_t needs)
{
	static const struct source source = {.take = batch_take, .sums_up = true};
	struct scene *scene = scene_make();

	scene->context.wants.needs |= needs;
	scene->episodes.source = &source;
	taken_count = 0;
	return scene;
}

/* One scan, 50 ms after the last: true if it has the sample. */
static bool scan(struct scene *scene, struct sample *sample)
{
	struct episode *episode;
	bool left_out;

	scan_begin(scene);
	episode = episodes_find(&scene->episodes, KEY);
	left_out = episode && episodes_skip(&scene->episodes) &&
		   episode_skip(&scene->episodes, &scene->context, episode, 50000);
	if (!left_out) {
		if (!episode || !episode_fill(&scene->context, episode, sample)) {
			record_sample(&scene->records[KEY], &scene->context.now.scan_time,
				      STATE_SLEEP, sample);
			episode = episodes_want(&scene->episodes, &scene->context,
						&scene->records[KEY]);
			if (!episode_keep(&scene->episodes, &scene->context, episode, sample,
					  false))
				episode = NULL;
		}
		sample->scan.weight_us = 50000;
		sample->sums.cpu_us = 9;
		sample->chain.text = scene->chain;
		if (episode) {
			episodes_want(&scene->episodes, &scene->context, &scene->records[KEY]);
			episode_deliver(&scene->episodes, &scene->context, episode, sample,
					&scene->sleepers);
		}
	}
	scan_end(scene, false);
	return !left_out;
}

/* Every scan counts once, in a sample that a scan has, or in one that is taken again. */
static void scans_that_leave_waits_out_count(void **state)
{
	static const uint64_t needs[] = {0, NEED_CHAIN};

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
		episodes_settle(&scene->episodes);
		last = taken_count - 1;
		episodes_settle(&scene->episodes);
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

	scene->records[KEY].sched.out_ns = NOW_NS;
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

/* The wait of KEY leads to that of record 1, in process 100. */
static void chain_lead(struct scene *scene)
{
	scene->sleepers = (struct chain_sleepers){
		.known = true,
		.count = 1,
		.sleepers = {{.key = 1, .tid = 101, .sequence = 4}},
	};
}

/* A chain is followed again in the first scan in which one of its threads, or of the process at its
 * end, was captured, has gone, or may have been missed. */
static void chains_that_change_are_followed(void **state)
{
	struct scene *scene = summed_scene(NEED_CHAIN);
	struct sample sample;

	chain_lead(scene);
	scene->records[2].identity.tgid = 40;
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	capture_copy(scene, 1);
	assert_true(scan(scene, &sample));
	assert_int_equal(sample.scan.repeats, 1);
	assert_false(scan(scene, &sample));
	capture_copy(scene, 2); /* of another process */
	assert_false(scan(scene, &sample));
	scene->gone[scene->capture.gone_count++] = 1;
	assert_true(scan(scene, &sample));
	assert_int_equal(sample.scan.repeats, 2);

	scene->sleepers.pid = 40;
	while (!scan(scene, &sample)) {
	}
	assert_false(scan(scene, &sample));
	capture_copy(scene, 2);
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	scene->capture.listed = false;
	assert_true(scan(scene, &sample));
	scene->sleepers.pid = 0;
	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	scene->records[1].wake.wake_ns = NOW_NS + NS_PER_SECOND;
	assert_true(scan(scene, &sample));
	scene_done(scene);
}

/* Where nothing but its threads can change a chain, its wait is left out from the start, until what
 * it waits for is to be read again. */
static void firm_chains_are_left_out_longer(void **state)
{
	struct scene *scene = summed_scene(NEED_CHAIN);
	struct sample sample;
	int left_out = 0;

	scene->records[KEY].sched.out_ns = NOW_NS;
	scene->sleepers.firm = true;
	assert_true(scan(scene, &sample));
	for (int i = 0; i < 20; i++)
		left_out += !scan(scene, &sample);
	assert_in_range(left_out, 10, 19);
	scene_done(scene);
}

/* Scans that left a wait out had it as the earlier sample has it, if a switch has changed its chain
 * since; if another lookup found the change, half of them did. */
static void changes_are_shared_out(void **state)
{
	for (int switched = 0; switched < 2; switched++) {
		struct scene *scene = summed_scene(NEED_CHAIN);
		struct sample sample;
		int count = 0;

		chain_lead(scene);
		assert_true(scan(scene, &sample));
		for (int i = 0; i < 4; i++)
			assert_false(scan(scene, &sample));
		if (switched)
			capture_copy(scene, 1);
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

/* What scans left out of a wait is handed over when the wait ends. */
static void waits_that_ended_count(void **state)
{
	struct scene *scene = summed_scene(0);
	struct sample sample;

	assert_true(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	assert_false(scan(scene, &sample));
	scene->records[KEY].sched.sequence_begun = scene->records[KEY].sched.sequence_done = 6;
	capture_copy(scene, KEY);
	assert_true(scan(scene, &sample));
	assert_int_equal(sample.scan.repeats, 0);
	assert_int_equal(taken_count, 1);
	assert_int_equal(taken[0].scan.repeats, 1);
	assert_int_equal(taken[0].scan.weight_us, 100000);
	assert_false(scan(scene, &sample));
	scene->gone[scene->capture.gone_count++] = KEY;
	scan_begin(scene);
	scan_end(scene, false);
	assert_int_equal(taken_count, 2);
	assert_int_equal(taken[1].scan.weight_us, 50000);
	scene_done(scene);
}

/* A filter of chains or stacks may refuse a sample late: then scans leave out nothing of it. */
static void refused_samples_do_not_count(void **state)
{
	struct scene *scene = summed_scene(0);
	struct sample sample;

	assert_true(scan(scene, &sample));
	sample.thread.tid = ABSENT;
	assert_true(report(scene, &scene->sample));
	episode_deliver(&scene->episodes, &scene->context, episodes_find(&scene->episodes, KEY),
			&sample, NULL);
	assert_false(scan(scene, &sample));
	episodes_settle(&scene->episodes);
	assert_int_equal(taken_count, 0);
	scene_done(scene);
}

/* Nothing is left out where stacks are read, where rows are wanted, at a low rate, and while the
 * end of a chain is not known. */
static void others_leave_nothing_out(void **state)
{
	static const struct source rows = {.take = batch_take};
	struct sample sample;

	for (int reason = 0; reason < 5; reason++) {
		struct scene *scene = summed_scene(NEED_CHAIN | (reason == 0 ? NEED_STACK : 0));

		if (reason == 1)
			scene->episodes.source = &rows;
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

static void episodes_are_judged_once(void **state)
{
	const uint64_t far = 1ull << 32 | 7;
	struct episodes sleepers = {0};
	uint64_t key;

	episodes_queue(&sleepers, 5000, 0);
	episodes_queue(&sleepers, 5000, 0);
	episodes_queue(&sleepers, far, 0);
	episodes_queue(&sleepers, far, 0);
	assert_true(episodes_next(&sleepers, &key) && key == 5000);
	assert_true(episodes_next(&sleepers, &key) && key == far);
	assert_false(episodes_next(&sleepers, &key));
	episodes_queue(&sleepers, 5000, 0);
	assert_false(episodes_next(&sleepers, &key));
	/* the thread ran */
	assert_false(episodes_judge(&sleepers, 5000, 1));
	episodes_queue(&sleepers, 5000, 1);
	assert_false(episodes_next(&sleepers, &key));
	episodes_queue(&sleepers, 5000, 2);
	assert_true(episodes_next(&sleepers, &key) && key == 5000);
	/* too many: the others are not classified */
	for (uint64_t i = 0; i < 100000; i++)
		episodes_queue(&sleepers, i, 3);
	for (key = 0; episodes_next(&sleepers, &key);)
		;
	assert_true(key >= 5000 && key <= 99998);
	episodes_queue(&sleepers, key + 1, 3);
	assert_true(episodes_next(&sleepers, &key));
	episodes_clear(&sleepers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(episodes_begin_and_end),
		cmocka_unit_test(captured_again_is_the_same),
		cmocka_unit_test(only_wanted_ones_stay),
		cmocka_unit_test(lost_changes_end_episodes),
		cmocka_unit_test(what_a_walk_does_not_meet_is_gone),
		cmocka_unit_test(sleepers_are_told_again),
		cmocka_unit_test(sleepers_are_told_until_their_wait_is_read),
		cmocka_unit_test(some_are_not_kept),
		cmocka_unit_test(scans_that_leave_waits_out_count),
		cmocka_unit_test(chains_are_followed_again),
		cmocka_unit_test(chains_that_change_are_followed),
		cmocka_unit_test(firm_chains_are_left_out_longer),
		cmocka_unit_test(changes_are_shared_out),
		cmocka_unit_test(waits_that_ended_count),
		cmocka_unit_test(refused_samples_do_not_count),
		cmocka_unit_test(others_leave_nothing_out),
		cmocka_unit_test(episodes_are_judged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
