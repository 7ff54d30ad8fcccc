/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the host counted in a window of the full screen, and the findings that are made of it. */
#include "screen/history.h"
#include "screen/host_log.h"
#include "screen/shown.h"
#include "screen/view.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "unit.h"

#define BEGIN_US 1700000000000000
#define SCANS 600 /* at 20 Hz: 30 s */
#define PERIOD_US 50000
#define SECONDS 30

struct scene {
	struct history *history;
	struct view view;
	struct shown shown;
	struct host_log log;
	struct source_status status;
};

static void scan_add(struct history *history, int64_t number)
{
	struct sample sample = *sample_absent();
	struct scan scan = {.samples = &sample,
			    .count = 1,
			    .time_us = BEGIN_US + number * PERIOD_US,
			    .weight_us = PERIOD_US};

	sample.thread.tid = sample.thread.pid = 100;
	sample.scan.weight_us = PERIOD_US;
	sample.scan.time_us = scan.time_us;
	sample.thread.comm = sample.thread.commsum = name_of_string("java");
	sample.now.state = STATE_ON;
	history_end_scan(history, &scan);
}

/* Counts of a host at that second: a JVM that stops its threads from second 10 to 20 for half of
 * the time, a device with 100 requests of 2 ms each second, which other programs time from second
 * 25 on, and, from second 20 on, requests that are not read. */
static void counts_set(struct source_status *status, int64_t second)
{
	int64_t stopped = second < 10 ? 0 : second < 20 ? second - 10 : 10;

	status->runtime_count = status->device_count = status->listener_count = 1;
	status->unread_count = second >= 20;
	status->runtimes[0] = (struct source_runtime){.pid = 100,
						      .known_us = (1000 + second) * US_PER_SECOND,
						      .stopped_us = stopped * US_PER_SECOND / 2,
						      .gc_us = stopped * US_PER_SECOND / 2,
						      .collections = stopped * 5,
						      .threads = 20,
						      .comm = "java"};
	status->devices[0] = (struct source_device){
		.name = name_of_string("vda"),
		.requests = 7000 + 100 * second,
		.taken_us = 900000 + 200000 * second,
		.timed_ns = second < 25 ? 1 : 2,
		.times = {[14] = (uint32_t)(100 * (second < 25 ? second : second - 25))},
	};
	status->listeners[0] =
		(struct source_listener){.inode = 7, .dropped = 40 + second, .port = 80};
	status->unread[0] = (struct source_unread){.port = 80,
						   .requests = 6,
						   .unaccepted = 6,
						   .late = 6,
						   .late_unaccepted = 6,
						   .oldest_us = 2 * US_PER_SECOND,
						   .pid = 100,
						   .threads = 1,
						   .comm = "java"};
}

static struct scene *scene_begin(void)
{
	const struct query query = {.columns = "comm", .all_states = true, .recorded = true};
	struct scene *scene = memory_get(sizeof(*scene));
	struct error e = {0};

	assert_int_equal(view_init(&scene->view, &query, &e), 0);
	scene->history = history_new(HISTORY_BYTES_DEFAULT, 0);
	for (int64_t number = 0; number < SCANS; number++)
		scan_add(scene->history, number);
	scene->status.cpus = 2;
	scene->status.busy_us = ABSENT;
	for (int64_t second = 0; second <= SECONDS; second++) {
		if (!host_log_is_due(&scene->log, BEGIN_US + second * US_PER_SECOND))
			continue;
		counts_set(&scene->status, second);
		host_log_add(&scene->log, BEGIN_US + second * US_PER_SECOND, &scene->status);
	}
	scene->shown.source.status = scene->status;
	scene->shown.source.needs = sample_needs_close(NEEDS_SHOWN);
	scene->shown.source.all_states = true;
	scene->shown.source.host_log = &scene->log;
	return scene;
}

static void scene_end(struct scene *scene)
{
	shown_done(&scene->shown);
	host_log_done(&scene->log);
	history_free(scene->history);
	free(scene);
	names_clear();
}

/* The number of findings of that name in the ten seconds until that one. */
static size_t found(struct scene *scene, const char *name, int64_t until)
{
	size_t count = 0;

	scene->view.now.window_us = 10 * US_PER_SECOND;
	scene->view.now.until_us = BEGIN_US + until * US_PER_SECOND;
	shown_fill(&scene->shown, scene->history, &scene->view.now, 72);
	scene->shown.findings.due_ns = 0;
	finding_lines_fill(&scene->shown, &scene->view.now, 160);
	for (size_t i = 0; i < scene->shown.findings.count; i++)
		count += !strcmp(scene->shown.findings.items[i].name, name);
	return count;
}

/* A window has what was counted in it, and nothing from before or after. */
static void test_findings(void **state)
{
	struct scene *scene = scene_begin();

	assert_int_equal(found(scene, "gc", 10), 0);
	assert_int_equal(found(scene, "gc", 20), 1);
	assert_int_equal(found(scene, "gc", 30), 0);
	assert_int_equal(found(scene, "unread", 15), 0);
	assert_int_equal(found(scene, "unread", 30), 1);
	scene->shown.source.host_log = NULL; /* a recording */
	assert_int_equal(found(scene, "gc", 20), 0);
	assert_int_equal(found(scene, "unread", 30), 0);
	scene_end(scene);
}

static void test_counts(void **state)
{
	struct scene *scene = scene_begin();
	struct source_status *status = &scene->status;

	host_log_take(&scene->log, BEGIN_US + 10 * US_PER_SECOND, BEGIN_US + 20 * US_PER_SECOND,
		      10 * US_PER_SECOND, status);
	assert_int_equal(status->device_count, 1);
	assert_int_equal(status->devices[0].requests, 1000);
	assert_int_equal(status->devices[0].taken_us, 2000000);
	assert_int_equal(status->devices[0].times[14], 1000);
	/* counts of events are not shared out: there may be one too many at the end */
	assert_in_range(status->listeners[0].dropped, 10, 15);
	assert_in_range(status->runtimes[0].known_us, 10 * US_PER_SECOND, 15 * US_PER_SECOND);
	/* of new programs, what they have counted since they were attached */
	host_log_take(&scene->log, BEGIN_US + 20 * US_PER_SECOND, BEGIN_US + 30 * US_PER_SECOND,
		      10 * US_PER_SECOND, status);
	assert_int_equal(status->devices[0].times[14], 500);
	/* the report began in the window: its first counts are those of the window */
	host_log_take(&scene->log, BEGIN_US - 20 * US_PER_SECOND, BEGIN_US + 4 * US_PER_SECOND,
		      4 * US_PER_SECOND, status);
	assert_int_equal(status->devices[0].requests, 400);
	/* later than what is known */
	host_log_take(&scene->log, BEGIN_US + 40 * US_PER_SECOND, BEGIN_US + 50 * US_PER_SECOND,
		      10 * US_PER_SECOND, status);
	assert_int_equal(status->device_count + status->runtime_count + status->listener_count +
				 status->unread_count,
			 0);
	scene_end(scene);
}

/* Ten minutes and no more are kept. */
static void test_ring(void **state)
{
	struct scene *scene = scene_begin();
	struct source_status *status = &scene->status;

	for (int64_t second = SECONDS + 1; second <= 1000; second++) {
		if (!host_log_is_due(&scene->log, BEGIN_US + second * US_PER_SECOND))
			continue;
		counts_set(status, second);
		host_log_add(&scene->log, BEGIN_US + second * US_PER_SECOND, status);
	}
	host_log_take(&scene->log, BEGIN_US + 500 * US_PER_SECOND, BEGIN_US + 600 * US_PER_SECOND,
		      100 * US_PER_SECOND, status);
	assert_int_equal(status->devices[0].requests, 10000);
	host_log_take(&scene->log, BEGIN_US, BEGIN_US + 100 * US_PER_SECOND, 100 * US_PER_SECOND,
		      status);
	assert_int_equal(status->device_count, 0);
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_findings),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
