/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/retention: order and time of removal, over weeks */
#include "unit.h"
#include "recording_scene.h"
#include "recording/part_name.h"
#include "recording/retention.h"

#include <fcntl.h>
#include <time.h>

/* Times three weeks before Berlin's clocks are put forward, and back. */
#define BEFORE_SPRING_US 1773014400000000ll
#define BEFORE_AUTUMN_US 1791158400000000ll

static void hour_make(struct scene *scene, const struct part_name *part)
{
	char name[PART_NAME_SIZE];
	int fd;

	part_name_write(part, name);
	fd = openat(scene->directory, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
	assert_true(fd >= 0);
	close(fd);
}

/* Makes the files of hours one after the other, as a crash may leave them: empty. */
static void hours_make(struct scene *scene, struct part_name *part, int64_t begin_us, int count)
{
	for (int hour = 0; hour < count; hour++) {
		part->hour_us = begin_us + hour * PART_HOUR_US;
		hour_make(scene, part);
	}
}

static size_t files_left(struct scene *scene)
{
	struct part_list list = {0};
	size_t count;

	assert_int_equal(part_list_read(&list, scene->directory), 0);
	count = list.count;
	part_list_done(&list);
	return count;
}

/* Makes an hour's file in each hour of 40 days, in which a clock is put back or forward. */
static void days_keep(struct scene *scene, const char *host, int64_t begin_us)
{
	const struct retention retention = {.keep_us = 7 * 24 * PART_HOUR_US};
	struct part_name now = {.number = 1, .kind = RECORD_SAMPLES};
	struct retention_log log = {0};
	size_t others = files_left(scene);

	strcpy(now.host, host);
	for (int hour = 0; hour < 40 * 24; hour++) {
		size_t kept = hour < 7 * 24 ? (size_t)hour + 1 : 7 * 24 + 1;
		struct part_list list = {0};
		const struct part_file *files;

		now.hour_us = begin_us + hour * PART_HOUR_US;
		hour_make(scene, &now);
		text_clear(&log.words);
		assert_int_equal(retention_apply(&retention, scene->directory, &now,
						 now.hour_us + PART_HOUR_US / 2, 0, &log),
				 0);
		assert_int_equal(log.words.length > 0, hour > 7 * 24);
		assert_int_equal(part_list_read(&list, scene->directory), 0);
		assert_int_equal(list.count, others + kept);
		files = list.files + others;
		for (size_t i = 0; i < kept; i++)
			assert_int_equal(files[i].name.hour_us,
					 now.hour_us - (int64_t)(kept - 1 - i) * PART_HOUR_US);
		part_list_done(&list);
	}
	text_done(&log.words);
}

static void test_keep_for_days_of_summer_time(void **state)
{
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	days_keep(*state, "a-spring", BEFORE_SPRING_US);
	days_keep(*state, "b-autumn", BEFORE_AUTUMN_US);
	unsetenv("TZ");
	tzset();
}

/* A clock that is a year ahead for a moment, also across the end of an hour, makes nothing old; one
 * that then is two years ahead costs a day of hours at most, and tells that. */
static void test_clock_ahead_removes_little(void **state)
{
	const struct retention retention = {.keep_us = 7 * 24 * PART_HOUR_US};
	struct part_name now = {.host = "unit", .number = 1, .kind = RECORD_SAMPLES};
	const int64_t year_us = 365 * 24 * PART_HOUR_US, last_us = START_US + 6 * 24 * PART_HOUR_US;
	struct scene *scene = *state;
	struct retention_log log = {0};

	hours_make(scene, &now, START_US, 6 * 24);
	for (int hour = 0; hour < 2; hour++) {
		now.hour_us = last_us + year_us + hour * PART_HOUR_US;
		hour_make(scene, &now);
		for (int i = 0; i < 3; i++)
			assert_int_equal(retention_apply(&retention, scene->directory, &now,
							 now.hour_us + i, 0, &log),
					 0);
	}
	assert_int_equal(files_left(scene), 6 * 24 + 2);
	assert_int_equal(log.words.length, 0);
	now.hour_us = last_us + 2 * year_us;
	hour_make(scene, &now);
	for (int i = 0; i < 3; i++)
		assert_int_equal(retention_apply(&retention, scene->directory, &now,
						 now.hour_us + i, 0, &log),
				 0);
	assert_int_equal(files_left(scene), 6 * 24 + 3 - 24);
	assert_string_equal(text_string(&log.words),
			    "removed (--keep): unit_20251120T15Z-001 to unit_20251121T14Z-001, "
			    "files: 24\n");
	text_done(&log.words);
}

/* After a pause three new hours are needed until the hours before it are old; these then go a day
 * at a time, and each removal is told. */
static void test_old_hours_go_by_days(void **state)
{
	const struct retention retention = {.keep_us = 7 * 24 * PART_HOUR_US};
	struct part_name now = {.host = "unit", .number = 1, .kind = RECORD_SAMPLES};
	const int64_t after_us = START_US + 60 * 24 * PART_HOUR_US;
	struct scene *scene = *state;
	struct retention_log log = {0};

	hours_make(scene, &now, START_US, 30);
	for (int hour = 0; hour < 5; hour++) {
		now.hour_us = after_us + hour * PART_HOUR_US;
		hour_make(scene, &now);
		for (int i = 0; i < 3; i++)
			assert_int_equal(retention_apply(&retention, scene->directory, &now,
							 now.hour_us, 0, &log),
					 0);
		assert_int_equal(files_left(scene), hour < 2	? 30 + hour + 1
						    : hour == 2 ? 30 - 24 + 3
								: hour + 1);
	}
	assert_string_equal(text_string(&log.words),
			    "removed (--keep): unit_20251120T15Z-001 to unit_20251121T14Z-001, "
			    "files: 24\n"
			    "removed (--keep): unit_20251121T15Z-001 to unit_20251121T20Z-001, "
			    "files: 6\n");
	text_done(&log.words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_keep_for_days_of_summer_time),
		SCENE_TEST(test_clock_ahead_removes_little),
		SCENE_TEST(test_old_hours_go_by_days),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
