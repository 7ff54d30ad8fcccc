/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a finding was found before: minutes in a row are one time, in local words; the time that
 * goes on is not "before". */
#include "recording/found_before.h"
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#define MINUTE_US 60000000ll
#define DAY_US (24 * 60 * MINUTE_US)
#define NOW_US 1763650800000000ll /* 2025-11-20 15:00 UTC, 16:00 in Berlin */

static void add(struct found_before *before, const char *culprit, int64_t ago_us, int minutes)
{
	for (int i = 0; i < minutes; i++)
		found_before_take(before, &(struct finding_entry){
						  .begin_us = NOW_US - ago_us + i * MINUTE_US,
						  .end_us = NOW_US - ago_us + (i + 1) * MINUTE_US,
						  .rank = 1,
						  .finding = "lock",
						  .culprit = culprit,
						  .thing = "mutex 0x7f00",
					  });
}

static void assert_before(const struct found_before *before, const char *culprit,
			  const char *expected)
{
	struct text text = {0};

	/* the address of a lock differs each time */
	found_before_add(&text, before,
			 &(struct finding_entry){
				 .finding = "lock", .culprit = culprit, .thing = "mutex 0x8000"},
			 NOW_US);
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
}

static void times_in_words(void **state)
{
	struct found_before before = {0};

	setenv("TZ", "Europe/Berlin", 1);
	tzset();
	assert_before(&before, "mariadbd", "");
	add(&before, "mariadbd", DAY_US + 115 * MINUTE_US, 15);
	assert_before(&before, "mariadbd", "yesterday 14:05 to 14:20");
	assert_before(&before, "postgres", "");
	add(&before, "mariadbd", DAY_US + 96 * MINUTE_US,
	    2); /* four minutes apart: the same time */
	assert_before(&before, "mariadbd", "yesterday 14:05 to 14:26");
	add(&before, "mariadbd", 4 * MINUTE_US, 4); /* goes on */
	assert_before(&before, "mariadbd", "yesterday 14:05 to 14:26");
	add(&before, "java", 6 * DAY_US, 1);
	assert_before(&before, "java", "2025-11-14 16:00 to 16:01");
	add(&before, "java", 4 * DAY_US + 16 * 60 * MINUTE_US + MINUTE_US, 3);
	assert_before(&before, "java",
		      "2025-11-15 23:59 to 2025-11-16 00:02, and on 3 of the last 7 days");
	add(&before, "java", 60 * MINUTE_US, 3);
	assert_before(&before, "java", "today 15:00 to 15:03, and on 4 of the last 7 days");
	found_before_done(&before);
}

static void things_where_nobody_is_to_blame(void **state)
{
	struct found_before before = {0};
	struct finding_entry disk = {.begin_us = NOW_US - 60 * MINUTE_US,
				     .end_us = NOW_US - 59 * MINUTE_US,
				     .rank = 1,
				     .finding = "disk",
				     .culprit = "",
				     .thing = "sda"};
	struct text text = {0};

	setenv("TZ", "UTC", 1);
	tzset();
	found_before_take(&before, &disk);
	disk.rank = 0;
	disk.thing = "";
	found_before_take(&before, &disk); /* nothing was found */
	found_before_add(&text, &before, &(struct finding_entry){.finding = "disk", .thing = "sdb"},
			 NOW_US);
	found_before_add(&text, &before, &(struct finding_entry){.finding = "disk"}, NOW_US);
	assert_string_equal(text_string(&text), "");
	found_before_add(&text, &before, &(struct finding_entry){.finding = "disk", .thing = "sda"},
			 NOW_US);
	assert_string_equal(text_string(&text), "today 14:00 to 14:01");
	text_done(&text);
	found_before_done(&before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_in_words),
		cmocka_unit_test(things_where_nobody_is_to_blame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
