/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void iso_both_ways(void **state)
{
	static const struct {
		int64_t us;
		const char *iso;
	} rows[] = {
		{0, "1970-01-01T00:00:00.000000Z"},
		{-1, "1969-12-31T23:59:59.999999Z"},
		{951782400000001, "2000-02-29T00:00:00.000001Z"},
		{1795207373123456, "2026-11-20T20:42:53.123456Z"},
		{253402300799999999, "9999-12-31T23:59:59.999999Z"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[CLOCK_ISO_SIZE];
		int64_t us = 42;

		clock_format_iso(rows[i].us, text);
		assert_string_equal(text, rows[i].iso);
		assert_int_equal(time_iso_read(rows[i].iso, &us), 0);
		assert_int_equal(us, rows[i].us);
	}
}

static void iso_refuses(void **state)
{
	static const char *const wrong[] = {
		"",
		"2026-11-20",
		"2026-11-20T20:42:53Z",
		"2026-11-20 20:42:53.123456Z",
		"2026-11-20T20:42:53.123456",
		"2026-11-20T20:42:53.123456ZZ",
		"2026-02-30T20:42:53.123456Z",
		"2026-13-01T20:42:53.123456Z",
		"2026-11-20T24:42:53.123456Z",
		"2026-11-20T20:42:60.123456Z",
		"2026-11-20T20:-2:53.123456Z",
		"2026-1a-20T20:42:53.123456Z",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int64_t us = 42;

		assert_int_equal(time_iso_read(wrong[i], &us), -EINVAL);
		assert_int_equal(us, 42);
	}
}

/* The text of any number ends within its buffer. */
static void iso_of_any_number(void **state)
{
	static const int64_t numbers[] = {INT64_MIN, INT64_MAX, -62135596800000001};
	char text[CLOCK_ISO_SIZE];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		memset(text, 'x', sizeof(text));
		clock_format_iso(numbers[i], text);
		assert_true(strnlen(text, sizeof(text)) < sizeof(text));
	}
}

static void on_alarm(int number)
{
}

static void sleep_ends(void **state)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval timer = {.it_value = {0, 20000}};
	int64_t start = clock_monotonic_ns();

	assert_int_equal(clock_sleep_until(start - 1), 0);
	assert_int_equal(clock_sleep_until(0), 0);
	assert_int_equal(clock_sleep_until(start + 3000000), 0);
	assert_true(clock_monotonic_ns() >= start + 3000000);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	assert_int_equal(clock_sleep_until(start + 60 * NS_PER_SECOND), -EINTR);
	assert_true(clock_monotonic_ns() < start + 30 * NS_PER_SECOND);
}

static void clocks_agree(void **state)
{
	volatile unsigned int work = 0;
	int64_t cpu = clock_cpu_ns(), monotonic = clock_monotonic_ns();

	assert_true(clock_boot_ns() >= monotonic);
	assert_true(clock_utc_us() > 1600000000ll * US_PER_SECOND);
	assert_true(llabs(clock_utc_of_us(monotonic) - clock_utc_us()) < 10 * US_PER_SECOND);
	assert_int_equal((clock_utc_of_us(2 * NS_PER_SECOND) - clock_utc_of_us(0) + 50000) / 100000,
			 20);
	while (clock_cpu_ns() < cpu + 1000000)
		work++;
	assert_true(work > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iso_both_ways),     cmocka_unit_test(iso_refuses),

		cmocka_unit_test(iso_of_any_number), cmocka_unit_test(sleep_ends),

		cmocka_unit_test(clocks_agree),

	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
