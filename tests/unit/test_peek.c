/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The full screen's peek at threads whose waits are traced: a line of a histogram is kept, and left
 * out, by the durations that samples have. */
#include "screen/command.h"
#include "screen/feed.h"
#include "screen/history.h"
#include "screen/key.h"
#include "screen/list.h"
#include "screen/shown.h"
#include "screen/view.h"
#include "screen/view_event.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/filter/expression.h"
#include "unit.h"

#define SCANS 100
#define PERIOD_US 50000
#define BUCKET 18 /* 8.39 to 16.8 ms */

static const struct trace_kind sleeps = {.name = "offcpu",
					 .samples = "state!=ON && state!=RQ",
					 .so_far = "state_us",
					 .known = KNOWN_STATE | NEED_SYSCALL};
static const struct trace_kind calls = {
	.name = "syscalls", .samples = "syscall!=", .so_far = "syscall_us", .known = NEED_SYSCALL};

struct scene {
	struct history *history;
	struct view view;
	struct shown shown;
};

/* Adds a scan of a thread that is asleep for 1, 2 ... 20 ms, and one on a CPU. */
static void scan_add(struct history *history, int64_t number)
{
	struct sample samples[2] = {*sample_absent(), *sample_absent()};
	struct scan scan = {.samples = samples,
			    .count = 2,
			    .time_us = 1700000000000000 + number * PERIOD_US,
			    .weight_us = PERIOD_US};

	for (size_t i = 0; i < 2; i++) {
		samples[i].thread.tid = samples[i].thread.pid = 100 + (int64_t)i;
		samples[i].scan.weight_us = PERIOD_US;
		samples[i].scan.time_us = scan.time_us;
		samples[i].thread.comm = samples[i].thread.commsum = name_of_string("worker");
		samples[i].now.state = i ? STATE_ON : STATE_SLEEP;
		samples[i].now.state_us = (1 + number % 20) * 1000;
	}
	history_end_scan(history, &scan);
}

static void scene_fill(struct scene *scene)
{
	shown_fill(&scene->shown, scene->history, &scene->view.now, 72);
	list_fill(&scene->shown, &scene->view);
}

static struct scene *scene_begin(const struct trace_kind *kind)
{
	const struct query query = {.columns = "comm", .all_states = true, .recorded = true};
	struct scene *scene = memory_get(sizeof(*scene));
	struct histogram histogram = {.sum_ns = 150000000, .max_ns = 20000000};
	struct sample who = *sample_absent();
	struct error e = {0};

	assert_int_equal(view_init(&scene->view, &query, &e), 0);
	bindings_begin(&scene->view.bindings);
	scene->history = history_new(HISTORY_BYTES_DEFAULT, 0);
	for (int64_t number = 0; number < SCANS; number++)
		scan_add(scene->history, number);
	who.thread.tid = who.thread.pid = 100;
	who.thread.comm = who.thread.commsum = name_of_string("worker");
	for (int bucket = BUCKET - 1; bucket <= BUCKET; bucket++)
		histogram.buckets[bucket] = 10;
	history_add_trace(scene->history, kind, &who, &histogram);
	scene->shown.source.needs = sample_needs_close(NEEDS_SHOWN);
	scene->shown.source.traces = scene->shown.source.all_states = true;
	scene_fill(scene);
	return scene;
}

static void scene_end(struct scene *scene)
{
	shown_done(&scene->shown);
	history_free(scene->history);
	free(scene);
	names_clear();
}

static void key(struct scene *scene, int32_t key)
{
	view_key(&scene->view, &scene->shown, key);
	scene_fill(scene);
}

/* Opens the peek at the first row, with the cursor on that line of the histogram. */
static void peek(struct scene *scene, const char *name, size_t line)
{
	scene->view.row = 0;
	key(scene, 'p');
	for (; *name; name++)
		key(scene, *name);
	assert_int_equal(list_matches(&scene->view, &scene->shown), 3);
	for (; line; line--)
		key(scene, KEY_CODE_DOWN);
}

/* Filter by a bucket: 9 to 16 ms lie in it, of each 20 scans. */
static void test_bucket(void **state)
{
	struct scene *scene = scene_begin(&sleeps);
	struct text detail = {0};

	assert_int_equal(scene->shown.tally.samples, 2 * SCANS);
	peek(scene, "offcpu", 2);
	list_add_detail(&detail, &scene->view, &scene->shown);
	assert_non_null(strstr(text_string(&detail), "state_us>=8388 && state_us<16777"));
	text_done(&detail);
	key(scene, KEY_CODE_ENTER);
	assert_string_equal(scene->view.now.filter,
			    "comm=worker && (state!=ON && state!=RQ && state_us>=8388 && "
			    "state_us<16777)");
	assert_int_equal(scene->shown.tally.samples, 8 * SCANS / 20);
	key(scene, KEY_CODE_BACKSPACE);
	assert_int_equal(scene->shown.tally.samples, 2 * SCANS);
	peek(scene, "offcpu", 2);
	key(scene, ' ');
	assert_int_equal(scene->shown.tally.samples, 2 * SCANS - 8 * SCANS / 20);
	scene_end(scene);
}

/* The line for the whole histogram selects the whole state. */
static void test_sum(void **state)
{
	struct scene *scene = scene_begin(&sleeps);

	peek(scene, "offcpu", 0);
	key(scene, ' ');
	assert_string_equal(scene->view.now.filter, "!(state!=ON && state!=RQ)");
	assert_int_equal(scene->shown.tally.samples, SCANS);
	scene_end(scene);
}

/* A column that is not sampled is loaded first. */
static void test_not_sampled(void **state)
{
	struct scene *scene = scene_begin(&calls);

	peek(scene, "syscalls", 1);
	key(scene, KEY_CODE_ENTER);
	assert_string_equal(scene->view.now.filter, "");
	assert_int_equal(scene->view.request, REQUEST_LOAD);
	assert_true(scene->view.load_needs & NEED_CALL_TIME);
	assert_string_equal(scene->view.message, "syscall_us is sampled from now on: peek again");
	scene_end(scene);
}

/* Leaving out a wait does not let idle threads in, if only active threads are shown. */
static void test_active_stay(void **state)
{
	struct scene *scene = scene_begin(&sleeps);

	scene->view.now.all_states = false;
	scene_fill(scene);
	assert_int_equal(scene->shown.tally.samples, SCANS);
	peek(scene, "offcpu", 1);
	key(scene, ' ');
	assert_non_null(strstr(scene->view.now.filter, "(state=||state~"));
	assert_int_equal(scene->shown.tally.samples, SCANS);
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_not_sampled),
		cmocka_unit_test(test_active_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
