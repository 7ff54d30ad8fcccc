/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The difference of two clocks, from made-up requests whose real one is known */
#include "unit.h"
#include "report/clock_offset.h"

#include <stdlib.h>

#define CONNECTIONS 8
#define REQUESTS 200
#define US_OF_MS 1000

static uint64_t seed;

static int64_t chance(int64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1;
	return (int64_t)(seed >> 33) % below;
}

/* Requests of a connection that take from least_ms on to twice that, with pauses of up to pause_ms;
 * each end sees one in `seldom` of them. fixed: all take the same. */
static void requests_make(struct connection_times *times, int64_t ahead_us, int64_t least_ms,
			  int64_t pause_ms, int64_t seldom, bool fixed)
{
	int64_t at_us = chance(50 * US_OF_MS);

	for (int i = 0; i < REQUESTS; i++) {
		int64_t took_us = US_OF_MS * (least_ms + (fixed ? 0 : chance(least_ms)));
		int64_t seen_us = chance(took_us), began_us = 100 + chance(took_us / 4);

		if (!chance(seldom))
			seen_spans_add(&times->waits, at_us, at_us + seen_us, REQUESTS);
		if (!chance(seldom))
			seen_spans_add(&times->servings, ahead_us + at_us + began_us,
				       ahead_us + at_us + began_us + chance(took_us - began_us),
				       REQUESTS);
		at_us += took_us + (fixed ? pause_ms * US_OF_MS : chance(pause_ms * US_OF_MS + 1));
	}
}

static bool found(int64_t ahead_us, int64_t least_ms, int64_t pause_ms, int64_t seldom, bool fixed,
		  struct clock_offset *offset)
{
	struct connection_times times[CONNECTIONS] = {0};
	const struct connection_times *all[CONNECTIONS];
	bool is;

	seed = 7;
	for (size_t i = 0; i < CONNECTIONS; i++) {
		requests_make(&times[i], ahead_us, least_ms, pause_ms, seldom, fixed);
		all[i] = &times[i];
	}
	is = clock_offset_find(all, CONNECTIONS, offset);
	for (size_t i = 0; i < CONNECTIONS; i++) {
		seen_spans_done(&times[i].waits);
		seen_spans_done(&times[i].servings);
	}
	return is;
}

/* The clock is found within milliseconds, ahead or behind, also where most requests are not seen by
 * both ends. */
static void of_requests(void **state)
{
	static const int64_t ahead_us[] = {0, 3000000, -127345, -599000000 + 30000000, 41};
	static const int64_t seldom[] = {1, 2, 4};
	struct clock_offset offset;

	for (size_t i = 0; i < sizeof(ahead_us) / sizeof(*ahead_us); i++)
		for (size_t j = 0; j < sizeof(seldom) / sizeof(*seldom); j++) {
			assert_true(found(ahead_us[i], 40, 30, seldom[j], false, &offset));
			assert_in_range(llabs(offset.us - ahead_us[i]), 0, 3000);
			assert_true(offset.low_us <= offset.us && offset.us <= offset.high_us);
			assert_true(offset.low_us <= ahead_us[i]);
			assert_true(offset.pairs > 20);
		}
}

/* Requests that are all alike have many differences that are as good as the real one. */
static void of_alike(void **state)
{
	struct clock_offset offset;

	assert_false(found(3000000, 40, 10, 1, true, &offset));
}

/* Too few, or a difference that is too large. */
static void of_nothing(void **state)
{
	struct connection_times times = {0};
	const struct connection_times *all[] = {&times};
	struct clock_offset offset;

	assert_false(clock_offset_find(all, 0, &offset));
	seen_spans_add(&times.waits, 1000, 2000, 10);
	seen_spans_add(&times.servings, 1100, 1900, 10);
	assert_false(clock_offset_find(all, 1, &offset));
	seen_spans_done(&times.waits);
	seen_spans_done(&times.servings);
	assert_false(found(2 * CLOCK_OFFSET_MAX_US, 40, 30, 1, false, &offset));
}

/* One state that many scans saw is one span, and a limit holds. */
static void spans(void **state)
{
	struct seen_spans spans = {0};

	for (int64_t seen = 100; seen < 500; seen += 100)
		seen_spans_add(&spans, seen % 3, 1000 * seen, 2);
	assert_int_equal(spans.count, 1);
	assert_int_equal(spans.spans[0].to_us, 400000);
	seen_spans_add(&spans, 500000, 600000, 2);
	seen_spans_add(&spans, 700000, 800000, 2);
	assert_int_equal(spans.count, 2);
	assert_int_equal(spans.spans[1].from_us, 500000);
	seen_spans_done(&spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_requests),
		cmocka_unit_test(of_alike),
		cmocka_unit_test(of_nothing),
		cmocka_unit_test(spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
