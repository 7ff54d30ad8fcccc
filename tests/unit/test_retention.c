/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recording/retention: order and time of removal, over weeks */
#include "unit.h"
#include "recording_scene.h"
#include "recording/part_list.h"
#include "recording/retention.h"

#include <fcntl.h>
#include <time.h>

/* Times three weeks before Berlin's clocks are put forward, and back. */
#define BEFORE_SPRING_US 1773014400000000ll
#define BEFORE_AUTUMN_US 1791158400000000ll

/* Makes an hour's file, empty as a crash may leave it, in each hour of 40 days, in which a clock is
 * put back or forward. */
static void days_keep(struct scene *scene, int64_t begin_us)
{
	const struct retention retention = {.keep_us = 7 * 24 * PART_HOUR_US};
	struct part_name now = {.host = "unit", .number = 1, .kind = RECORD_SAMPLES};

	for (int hour = 0; hour < 40 * 24; hour++) {
		size_t kept = hour < 7 * 24 ? (size_t)hour + 1 : 7 * 24 + 1;
		struct part_list list = {0};
		char name[PART_NAME_SIZE];
		int fd;

		now.hour_us = begin_us + hour * PART_HOUR_US;
		part_name_write(&now, name);
		fd = openat(scene->directory, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(retention_apply(&retention, scene->directory, &now,
						 now.hour_us + PART_HOUR_US / 2, 0),
				 0);
		assert_int_equal(part_list_read(&list, scene->directory), 0);
		assert_int_equal(list.count, kept);
		for (size_t i = 0; i < kept; i++)
			assert_int_equal(list.files[i].name.hour_us,
					 now.hour_us - (int64_t)(kept - 1 - i) * PART_HOUR_US);
		part_list_done(&list);
	}
	/* the next days begin in an empty directory */
	now.hour_us += 40 * 24 * PART_HOUR_US;
	assert_int_equal(retention_apply(&retention, scene->directory, &now, now.hour_us, 0), 0);
}

static void test_keep_for_days_of_summer_time(void **state)
{
	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	days_keep(*state, BEFORE_SPRING_US);
	days_keep(*state, BEFORE_AUTUMN_US);
	unsetenv("TZ");
	tzset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_keep_for_days_of_summer_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
