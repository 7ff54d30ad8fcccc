/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/archive, retention, tiers: a few of the scans once more, kept longer */
#include "unit.h"
#include "recording_scene.h"
#include "base/clock.h"
#include "recording/archive.h"
#include "recording/part_name.h"
#include "recording/recorder.h"
#include "recording/recording.h"

#define SCAN_US (SECOND_US / 10)

static struct sample thread(int64_t tid, int64_t time_us, int64_t cpu_us)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = tid;
	sample.scan.time_us = time_us;
	sample.scan.weight_us = SCAN_US;
	sample.sums.cpu_us = cpu_us;
	return sample;
}

/* Replays 401 scans at 10 Hz; one thread in each, one in every tenth, one without exact times. */
static void test_nothing_of_exact_times_is_lost(void **state)
{
	struct archive archive = {.every_us = SECOND_US};
	int64_t cpu_us = 0, rare_us = 0, weight_us = 0, until_us = START_US - SCAN_US;
	int64_t reported_us = 0, rare_told_us = 0;
	int scans = 0;

	for (int i = 0; i < 401; i++) {
		int64_t now_us = START_US + i * SCAN_US;
		struct sample samples[] = {thread(1, now_us, 1000 + i), thread(3, now_us, ABSENT),
					   thread(2, now_us, 7)};
		struct scan scan = {.time_us = now_us, .weight_us = SCAN_US, .samples = samples};
		struct scan_row row;
		struct scan archived;

		scan.count = i % 10 == 3 ? 3 : 2;
		cpu_us += 1000 + i;
		rare_us += scan.count == 3 ? 7 : 0;
		archived = archive_take(&archive, &scan);
		for (size_t j = 0; j < archived.count; j++) {
			const struct sample *sample = &archived.samples[j];

			reported_us += sample->thread.tid == 1 ? sample->sums.cpu_us : 0;
			rare_told_us += sample->thread.tid == 2 ? sample->sums.cpu_us : 0;
			assert_true(sample->thread.tid != 2 || rare_told_us == rare_us);
			assert_true(sample->thread.tid != 3 || sample->sums.cpu_us == ABSENT);
			assert_int_equal(sample->scan.weight_us, now_us - until_us);
		}
		scan.count = 0;
		assert_int_equal(archive_scan_end(&archive, &scan, &row), archived.count != 0);
		if (!archived.count)
			continue;
		assert_int_equal(row.samples, archived.count);
		assert_int_equal(row.weight_us, now_us - until_us);
		assert_int_equal(reported_us, cpu_us);
		weight_us += row.weight_us;
		until_us = now_us;
		scans++;
	}
	assert_in_range(scans, 37, 43);
	assert_int_not_equal(rare_told_us, 0);
	assert_in_range(weight_us, 401 * SCAN_US - 3 * SECOND_US / 2, 401 * SCAN_US);
	archive_done(&archive);
}

/* Checks that a thread which works at the beginning of each second has its share in the archive. */
static void test_archive_has_no_rhythm(void **state)
{
	struct archive archive = {.every_us = SECOND_US};
	int64_t awake_us = 0, weight_us = 0;

	for (int i = 0; i < 100000; i++) {
		int64_t now_us = START_US + i * SCAN_US + 1;
		struct sample samples[] = {thread(1, now_us, 0)};
		struct scan scan = {
			.time_us = now_us, .weight_us = SCAN_US, .samples = samples, .count = 1};
		struct scan archived;
		struct scan_row row;

		samples[0].now.state = i % 10 ? STATE_SLEEP : STATE_ON;
		archived = archive_take(&archive, &scan);
		if (archived.count && archived.samples->now.state == STATE_ON)
			awake_us += archived.samples->scan.weight_us;
		scan.count = 0;
		if (archive_scan_end(&archive, &scan, &row))
			weight_us += row.weight_us;
	}
	assert_in_range(100 * awake_us / weight_us, 9, 11);
	archive_done(&archive);
}

/* Checks that the times of a thread that ended are not given to the next one with its number, that
 * scans without threads awake count, and that a clock may step back. */
static void test_archive_forgets(void **state)
{
	struct archive archive = {.every_us = SECOND_US};
	struct scan archived = {0};
	struct scan_row row;
	int rows = 0, i;

	for (i = 0; i <= 1990 || !archived.count; i++) {
		int64_t now_us = START_US + (i < 1000 ? i : i - 500) * SCAN_US + 1;
		struct sample samples[] = {thread(i < 1990 ? 1000 + i : 1, now_us, 5)};
		struct scan scan = {.time_us = now_us, .weight_us = SCAN_US};

		if (i == 1)
			samples[0].thread.tid = 1;
		scan.samples = samples;
		scan.count = 1;
		archived = archive_take(&archive, &scan);
		scan.count = 0;
		rows += archive_scan_end(&archive, &scan, &row);
	}
	assert_in_range(rows, 185, 215);
	assert_int_equal(archived.count, 1);
	assert_int_equal(archived.samples->sums.cpu_us, 5 * (i - 1990));
	assert_in_range(archive.sum_count, 600, 1600);
	archive_done(&archive);
}

/* Records ten hours of two scans in each tier, the archive's only in the second half of each
 * hour. */
static void tiers_record(struct scene *scene, const struct retention *retention)
{
	struct recorder_options options = {
		.path = scene->path,
		.host = "unit",
		.flush_us = 20000,
		.retention = *retention,
		.headers = {[RECORD_SAMPLES] = HEADER,
			    [RECORD_SCANS] = SCAN_ROWS_HEADER,
			    [RECORD_HOST] = "timestamp",
			    [RECORD_ARCHIVE] = HEADER,
			    [RECORD_ARCHIVE_SCANS] = SCAN_ROWS_HEADER},
	};
	struct recorder *recorder;
	struct error e = {0};

	assert_int_equal(recorder_open(&options, &recorder, &e), 0);
	for (int i = 0; i < 10 * 6; i++) {
		int64_t now_us = START_US + i * PART_HOUR_US / 6;
		struct scan_row row = {.time_us = now_us, .weight_us = SECOND_US, .samples = 1};
		char time[CLOCK_ISO_SIZE];

		clock_format_iso(now_us, time);
		if (i % 6 != 3) {
			text_add_format(recorder_rows(recorder, RECORD_SAMPLES),
					"\"%s\",1000000,7,\"ON\",\"fine\"\n", time);
			scan_row_add(recorder_rows(recorder, RECORD_SCANS), &row);
			text_add_format(recorder_rows(recorder, RECORD_HOST), "\"%s\"\n", time);
		}
		if (i % 6 >= 2) {
			text_add_format(recorder_rows(recorder, RECORD_ARCHIVE),
					"\"%s\",1000000,7,\"ON\",\"archived\"\n", time);
			scan_row_add(recorder_rows(recorder, RECORD_ARCHIVE_SCANS), &row);
		}
		recorder_put(recorder, now_us);
	}
	assert_int_equal(recorder_close(recorder, &e), 0);
}

/* Counts the scans of both tiers in a replay, which must be in order. */
static void tiers_replay(const char *path, int *fine, int *archived)
{
	const char *const paths[] = {path, NULL};
	const struct recording_part part = {.from_us = ABSENT, .until_us = ABSENT};
	static const struct filter all = {.all_states = true};
	struct source *source;
	struct error e = {0};
	struct scan scan;
	int64_t last_us = 0;

	*fine = *archived = 0;
	assert_int_equal(recording_open(paths, &part, &all, ~0ull, &source, &e), 0);
	while (source->next(source, &scan, &e) > 0) {
		assert_true(scan.time_us > last_us);
		assert_int_equal(scan.count, 1);
		last_us = scan.time_us;
		*fine += !strcmp(scan.samples->thread.comm, "fine");
		*archived += !strcmp(scan.samples->thread.comm, "archived");
	}
	source->close(source);
}

static void test_archive_fills_what_is_not_there(void **state)
{
	struct scene *scene = *state;
	const struct retention all = {0};
	char command[200];
	int fine, archived;

	tiers_record(scene, &all);
	tiers_replay(scene->path, &fine, &archived);
	assert_int_equal(fine, 10 * 5);
	assert_int_equal(archived, 10);
	snprintf(command, sizeof(command), "rm %s/*.samples.* %s/*Z-001.scans.*", scene->path,
		 scene->path);
	assert_int_equal(system(command), 0);
	tiers_replay(scene->path, &fine, &archived);
	assert_int_equal(fine, 0);
	assert_int_equal(archived, 10 * 4);
}

/* One file to hand on has both. */
static void test_snapshot_of_two_tiers(void **state)
{
	struct scene *scene = *state;
	const struct retention all = {0};
	const char *const paths[] = {scene->path, NULL};
	const struct recording_part part = {.from_us = START_US + PART_HOUR_US,
					    .until_us = START_US + 4 * PART_HOUR_US};
	struct error e = {0};
	char file[100];
	int fine, archived;

	tiers_record(scene, &all);
	snprintf(file, sizeof(file), "%s/cut", scene->path);
	assert_int_equal(recording_snapshot(paths, &part, file, &e), 0);
	tiers_replay(file, &fine, &archived);
	assert_int_equal(fine, 3 * 5);
	assert_int_equal(archived, 3);
}

/* Returns how many files of a kind are left, and the hour of the first. */
static int files_left(const struct scene *scene, enum record_kind kind, int64_t *first_us)
{
	struct part_list list = {0};
	int count = 0;

	assert_int_equal(part_list_read(&list, scene->directory), 0);
	for (size_t i = list.count; i-- > 0;) {
		if (list.files[i].name.kind != kind)
			continue;
		*first_us = list.files[i].name.hour_us;
		count++;
	}
	part_list_done(&list);
	return count;
}

static void test_tiers_are_kept_apart(void **state)
{
	struct scene *scene = *state;
	const struct retention all = {0},
			       some = {.keep_us = 2 * PART_HOUR_US,
				       .has_archive = true,
				       .keep_archive_us = 5 * PART_HOUR_US},
			       least = {.has_archive = true, .keep_bytes = 2500};
	struct part_name now = {
		.host = "unit", .hour_us = START_US + 9 * PART_HOUR_US, .number = 1};
	int64_t now_us = now.hour_us + PART_HOUR_US / 2, first_us = 0;
	struct retention_log log = {0};

	tiers_record(scene, &all);
	assert_int_equal(retention_apply(&some, scene->directory, &now, now_us, 0, &log), 0);
	assert_int_equal(files_left(scene, RECORD_SAMPLES, &first_us), 3);
	assert_int_equal(files_left(scene, RECORD_SCANS, &first_us), 3);
	assert_int_equal(first_us, START_US + 7 * PART_HOUR_US);
	assert_int_equal(files_left(scene, RECORD_ARCHIVE, &first_us), 6);
	assert_int_equal(files_left(scene, RECORD_ARCHIVE_SCANS, &first_us), 6);
	assert_int_equal(files_left(scene, RECORD_HOST, &first_us), 6);
	assert_int_equal(first_us, START_US + 4 * PART_HOUR_US);
	/* limit too small for both: fine files go first, except those of the present hour */
	assert_int_equal(retention_apply(&least, scene->directory, &now, now_us, 0, &log), 0);
	assert_int_equal(files_left(scene, RECORD_SAMPLES, &first_us), 1);
	assert_in_range(files_left(scene, RECORD_ARCHIVE, &first_us), 2, 5);
	text_done(&log.words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_of_exact_times_is_lost),
		cmocka_unit_test(test_archive_has_no_rhythm),
		cmocka_unit_test(test_archive_forgets),
		SCENE_TEST(test_archive_fills_what_is_not_there),
		SCENE_TEST(test_snapshot_of_two_tiers),
		SCENE_TEST(test_tiers_are_kept_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
