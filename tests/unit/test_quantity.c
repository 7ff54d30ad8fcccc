/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/quantity: numbers with units, in options, filters and on the screen */
#include "unit.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <errno.h>

static void test_read(void **state)
{
	static const struct {
		const char *text;
		enum quantity kind;
		int64_t bare, value;
	} rows[] = {
		{"0", QUANTITY_COUNT, 1, 0},
		{"9223372036854775807", QUANTITY_COUNT, 1, INT64_MAX},
		{"90", QUANTITY_TIME, US_PER_SECOND, 90 * US_PER_SECOND},
		{"90", QUANTITY_TIME, 1, 90},
		{"0.000001", QUANTITY_TIME, US_PER_SECOND, 1},
		{"500us", QUANTITY_TIME, US_PER_SECOND, 500},
		{"1.5ms", QUANTITY_TIME, 1, 1500},
		{"1m", QUANTITY_TIME, 1, 60 * US_PER_SECOND},
		{"1min", QUANTITY_TIME, 1, 60 * US_PER_SECOND},
		{"1h30m", QUANTITY_TIME, 1, 5400 * US_PER_SECOND},
		{"2d", QUANTITY_TIME, 1, 172800 * US_PER_SECOND},
		{"0.999999w", QUANTITY_TIME, 1, 604799395200},
		{"64K", QUANTITY_BYTES, 1, 65536},
		{"1.5G", QUANTITY_BYTES, 1, 1610612736},
		{"0.001T", QUANTITY_BYTES, 1, 1099511627},
		{"0.5%", QUANTITY_PERCENT, 10, 5},
		{"5", QUANTITY_PERCENT, 10, 50},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value = -1;
		int err = quantity_read(rows[i].text, rows[i].kind, rows[i].bare, &value);

		if (err || value != rows[i].value)
			fail_msg("%s is %lld (%d)", rows[i].text, (long long)value, err);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		enum quantity kind;
		int err;
	} rows[] = {
		{"", QUANTITY_TIME, -EINVAL},
		{"s", QUANTITY_TIME, -EINVAL},
		{"-1", QUANTITY_TIME, -EINVAL},
		{" 1", QUANTITY_TIME, -EINVAL},
		{"1 s", QUANTITY_TIME, -EINVAL},
		{"1.", QUANTITY_TIME, -EINVAL},
		{".5", QUANTITY_TIME, -EINVAL},
		{"1.5.5", QUANTITY_TIME, -EINVAL},
		{"1y", QUANTITY_TIME, -EINVAL},
		{"1.0000001s", QUANTITY_TIME, -EINVAL},
		{"1.5us", QUANTITY_TIME, -EINVAL},
		{"5K", QUANTITY_TIME, -EINVAL},
		{"5s", QUANTITY_BYTES, -EINVAL},
		{"1.5", QUANTITY_BYTES, -EINVAL},
		{"5k", QUANTITY_BYTES, -EINVAL},
		{"1.5", QUANTITY_COUNT, -EINVAL},
		{"5s", QUANTITY_COUNT, -EINVAL},
		{"9223372036854775808", QUANTITY_COUNT, -ERANGE},
		{"9223372036854775807K", QUANTITY_BYTES, -ERANGE},
		{"8388608T", QUANTITY_BYTES, -ERANGE},
		{"15000000w999999w", QUANTITY_TIME, -ERANGE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value;
		int err = quantity_read(rows[i].text, rows[i].kind, 1, &value);

		if (err != rows[i].err)
			fail_msg("'%s' returned %d", rows[i].text, err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
