/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distributions: their buckets and percentiles, and how durations are written */
#include "unit.h"
#include "report/value.h"
#include "sample/histogram.h"

static void buckets_follow_each_other(void **state)
{
	assert_int_equal(histogram_low_ns(0), 0);
	assert_int_equal(histogram_high_ns(0), 64);
	assert_int_equal(histogram_low_ns(1), 64);
	assert_int_equal(histogram_high_ns(5), 2048);
	for (int i = 1; i < HISTOGRAM_BUCKETS; i++)
		assert_int_equal(histogram_low_ns(i), histogram_high_ns(i - 1));
	assert_int_equal(histogram_low_ns(HISTOGRAM_BUCKETS - 1), 1ll << 36);
	assert_int_equal(histogram_high_ns(HISTOGRAM_BUCKETS - 1), INT64_MAX);
}

static void merged_are_one(void **state)
{
	struct histogram one = {.sum_ns = 100, .max_ns = 70, .buckets = {1, 2}};
	const struct histogram other = {.sum_ns = 9000, .max_ns = 8000, .buckets = {0, 1, [7] = 4}};

	histogram_merge(&one, &other);
	assert_int_equal(one.sum_ns, 9100);
	assert_int_equal(one.max_ns, 8000);
	assert_int_equal(one.buckets[0], 1);
	assert_int_equal(one.buckets[1], 3);
	assert_int_equal(one.buckets[7], 4);
	assert_int_equal(histogram_count(&one), 8);
	histogram_merge(&one, &(struct histogram){0});
	assert_int_equal(one.max_ns, 8000);
	assert_int_equal(histogram_count(&one), 8);
}

/* 100 events from 1024 to 2048 ns, 100 from 4096 on, of which the longest took 5096 */
static void quantiles_lie_between_bounds(void **state)
{
	const struct histogram histogram = {.max_ns = 5096, .buckets = {[5] = 100, [7] = 100}};

	assert_int_equal(histogram_quantile_ns(&histogram, 0), 1034);
	assert_int_equal(histogram_quantile_ns(&histogram, 250), 1536);
	assert_int_equal(histogram_quantile_ns(&histogram, 500), 2048);
	assert_int_equal(histogram_quantile_ns(&histogram, 750), 4596);
	assert_int_equal(histogram_quantile_ns(&histogram, 900), 4896);
	assert_int_equal(histogram_quantile_ns(&histogram, 994), 5086);
	assert_int_equal(histogram_quantile_ns(&histogram, 999), 5096);
	assert_int_equal(histogram_quantile_ns(&histogram, 1000), 5096);
}

static void quantiles_of_few_and_of_the_longest(void **state)
{
	const struct histogram none = {0}, zero = {.buckets = {3}};
	const struct histogram single = {.max_ns = 3000, .buckets = {[6] = 1}};
	const struct histogram longest = {.max_ns = INT64_MAX - 1,
					  .buckets = {[HISTOGRAM_BUCKETS - 1] = 1000000000000}};
	int64_t before = 0;

	assert_int_equal(histogram_quantile_ns(&none, 500), 0);
	assert_int_equal(histogram_quantile_ns(&zero, 999), 0);
	assert_int_equal(histogram_quantile_ns(&single, 1), 3000);
	assert_int_equal(histogram_quantile_ns(&single, 999), 3000);
	for (int permille = 0; permille < 1000; permille++) {
		int64_t quantile = histogram_quantile_ns(&longest, permille);

		assert_true(quantile >= before && quantile >= 1ll << 36);
		before = quantile;
	}
}

static void durations_have_three_digits(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{0, "0 ns"},
		{7, "7 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{1049, "1.05 us"},
		{9994, "9.99 us"},
		{9996, "10.0 us"},
		{99949, "99.9 us"},
		{99951, "100 us"},
		{999499, "999 us"},
		{999500, "1.00 ms"},
		{12345678, "12.3 ms"},
		{999499999, "999 ms"},
		{999500000, "1.00 s"},
		{123456789012345, "123457 s"},
		{INT64_MAX, "9223372037 s"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text text = {0};

		text_add_duration(&text, rows[i].ns);
		assert_string_equal(text_string(&text), rows[i].text);
		text_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_follow_each_other),
		cmocka_unit_test(merged_are_one),
		cmocka_unit_test(quantiles_lie_between_bounds),
		cmocka_unit_test(quantiles_of_few_and_of_the_longest),
		cmocka_unit_test(durations_have_three_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
