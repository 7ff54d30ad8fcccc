/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/quantity: --from and --to, filters, in zones and when clocks are put forward and back */
#include "unit.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <time.h>

/* A date and time in UTC, whole or in part, as filters have it. */
static int64_t utc(const char *iso)
{
	struct time_context context = {.utc = true};
	int64_t time_us;

	assert_int_equal(time_word_read(iso, &context, &time_us), 0);
	return time_us;
}

/* As --from is read. */
static int from_read(const char *word, int64_t now_us, int64_t *time_us)
{
	struct time_context context = {.now_us = now_us, .after_us = TIME_NOT_AFTER};

	return time_word_read(word, &context, time_us);
}

static void zone_set(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

/* Checks --from; the present time is always 2026-11-22T15:30:00Z. */
static void from_is(const char *word, const char *iso)
{
	int64_t time_us = 0;

	if (from_read(word, utc("2026-11-22T15:30:00"), &time_us) < 0 || time_us != utc(iso)) {
		char got[CLOCK_ISO_SIZE];

		clock_format_iso(time_us, got);
		fail_msg("%s is %s, not %s", word, got, iso);
	}
}

static void to_is(const char *word, const char *from, const char *iso)
{
	struct time_context context = {.now_us = utc("2026-11-22T15:30:00"),
				       .after_us = from ? utc(from) : TIME_NOT_AFTER,
				       .of_two_later = true};
	int64_t time_us = 0;

	if (time_word_read(word, &context, &time_us) < 0 || time_us != utc(iso)) {
		char got[CLOCK_ISO_SIZE];

		clock_format_iso(time_us, got);
		fail_msg("%s is %s, not %s", word, got, iso);
	}
}

static void test_utc(void **state)
{
	zone_set("UTC0");
	from_is("now", "2026-11-22T15:30:00");
	from_is("-1h", "2026-11-22T14:30:00");
	from_is("-1h30m", "2026-11-22T14:00:00");
	from_is("-2d", "2026-11-20T15:30:00");
	from_is("-1.5h", "2026-11-22T14:00:00");
	from_is("-90", "2026-11-22T15:28:30");
	from_is("02:10", "2026-11-22T02:10:00");
	from_is("2:10", "2026-11-22T02:10:00");
	from_is("2026-11-20T02", "2026-11-20T02:00:00");
	from_is("15:30", "2026-11-22T15:30:00");
	from_is("15:31", "2026-11-21T15:31:00");
	from_is("02:10:30.25", "2026-11-22T02:10:30.250000");
	from_is("today", "2026-11-22");
	from_is("yesterday", "2026-11-21");
	from_is("yesterday 02:10", "2026-11-21T02:10:00");
	from_is("yesterday 24:00", "2026-11-22");
	from_is("2026-11-20", "2026-11-20");
	from_is("2026-11-20T02:10", "2026-11-20T02:10:00");
	from_is("2026-11-20 02:10:00.5", "2026-11-20T02:10:00.500000");
	from_is("2026-11-20T02:10+01:00", "2026-11-20T01:10:00");
	from_is("2026-11-20T02:10-0330", "2026-11-20T05:40:00");
	to_is("02:20", "2026-11-22T02:10:00", "2026-11-22T02:20:00");
	to_is("00:10", "2026-11-21T23:50:00", "2026-11-22T00:10:00");
	to_is("02:20", NULL, "2026-11-22T02:20:00");
}

static void test_zones(void **state)
{
	zone_set("EST5EDT,M3.2.0,M11.1.0"); /* local time is 10:30 */
	from_is("10:30", "2026-11-22T15:30:00");
	from_is("10:31", "2026-11-21T15:31:00");
	from_is("02:10Z", "2026-11-22T02:10:00");
	from_is("02:10 UTC", "2026-11-22T02:10:00");
	from_is("02:10 +01:00", "2026-11-22T01:10:00");
	from_is("02:10-05:00", "2026-11-22T07:10:00");
	from_is("yesterday 12:00-18:00", "2026-11-21T06:00:00");
	from_is("today", "2026-11-22T05:00:00");
	from_is("yesterday", "2026-11-21T05:00:00");
	from_is("yesterday 23:00", "2026-11-22T04:00:00");
	from_is("2026-07-01T12:00", "2026-07-01T16:00:00");
	from_is("2026-07-01T12:00Z", "2026-07-01T12:00:00");
	zone_set("JST-9"); /* local time is 00:30 on the 23rd */
	from_is("today", "2026-11-22T15:00:00");
	from_is("today Z", "2026-11-22T00:00:00");
	from_is("00:10", "2026-11-22T15:10:00");
	from_is("23:00", "2026-11-22T14:00:00");
}

/* Filters, and parts of files: UTC unless a zone was typed, whatever the local zone. */
static void test_utc_by_default(void **state)
{
	struct time_context context = {.after_us = -1, .utc = true};
	int64_t time_us;

	zone_set("JST-9");
	assert_int_equal(utc("2026-11-20T02:10+01:00"), utc("2026-11-20T01:10"));
	assert_int_equal(time_word_read("20:42", &context, &time_us), TIME_OF_DAY);
	assert_int_equal(time_us, (20 * 3600 + 42 * 60) * US_PER_SECOND);
	assert_int_equal(time_word_read("00:30+01:00", &context, &time_us), TIME_OF_DAY);
	assert_int_equal(time_us, (23 * 3600 + 30 * 60) * US_PER_SECOND);
}

/* Summer time: in 2026 clocks go from 02:00 to 03:00 on March 29th, and from 03:00 back on October
 * 25th. */
static void test_summer_time(void **state)
{
	zone_set("CET-1CEST,M3.5.0,M10.5.0/3");
	from_is("2026-03-29T01:59", "2026-03-29T00:59:00");
	from_is("2026-03-29T03:00", "2026-03-29T01:00:00");
	from_is("2026-10-25T02:30", "2026-10-25T00:30:00");
	to_is("2026-10-25T02:30", NULL, "2026-10-25T01:30:00");
	to_is("02:45", "2026-10-25T00:30:00", "2026-10-25T01:45:00");
	from_is("2026-10-25T03:00", "2026-10-25T02:00:00");
	from_is("2026-10-26", "2026-10-25T23:00:00");
}

/* A time that the clocks leave out is one of the hour beside it. */
static void test_left_out_time(void **state)
{
	int64_t time_us;

	zone_set("CET-1CEST,M3.5.0,M10.5.0/3");
	assert_int_equal(from_read("2026-03-29T02:30", 0, &time_us), 0);
	assert_true(time_us >= utc("2026-03-29T00:30:00") && time_us <= utc("2026-03-29T01:30:00"));
}

static void test_refused(void **state)
{
	static const char *const words[] = {
		"",
		"2",
		"02",
		"2:1",
		"02:60",
		"24:01",
		"-",
		"-1y",
		"-h",
		"tomorrow",
		"2026-13-01",
		"now ",
		"02:10x",
		"2026-11-2",
		"2026-02-30",
		"2026-11-20T2",
		"2026-11-20T",
		"02:10+25:00",
		"2026-11-20T02:10:00.",
		"Z",
		"02:10ZZ",
		"02:10:00.1234567",
		"-1h-",
	};
	int64_t time_us;

	zone_set("UTC0");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (from_read(words[i], 0, &time_us) >= 0)
			fail_msg("'%s' was read", words[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utc),	    cmocka_unit_test(test_zones),
		cmocka_unit_test(test_summer_time), cmocka_unit_test(test_left_out_time),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_utc_by_default),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
