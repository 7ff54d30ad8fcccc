/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live/chains/live_edge_time: the time that edges of wait chains may take. */
#include "live/chains/live_edge_time.h"
#include "base/clock.h"
#include "sample/sample.h"

#include "unit.h"

#define PERIOD_NS (4000 * NS_PER_SECOND) /* period for which the test's own time is negligible */

/* Simulates that edges of that user took so long. */
static void spend_time(struct live_edge_time *time, int64_t uid, int64_t seconds, bool on_cpu)
{
	live_edge_time_resume(time);
	time->since_ns -= seconds * NS_PER_SECOND;
	time->cpu_ns -= on_cpu ? seconds * NS_PER_SECOND : 0;
	live_edge_time_take(time, uid);
}

static void spend(struct live_edge_time *time, int64_t uid, int64_t seconds)
{
	spend_time(time, uid, seconds, true);
}

static void one_user_leaves_some_to_others(void **state)
{
	struct live_edge_time time = {0};

	live_edge_time_begin(&time, 0, PERIOD_NS);
	spend(&time, 1000, 1400);
	assert_true(live_edge_time_left(&time, 1000));
	spend(&time, 1000, 200);
	assert_false(live_edge_time_left(&time, 1000));
	assert_true(live_edge_time_left(&time, 0));
	spend(&time, 0, 1450);
	assert_false(live_edge_time_left(&time, 0));
	assert_false(live_edge_time_left(&time, 1001));
	assert_int_equal(time.refused_count, 3);
	live_edge_time_done(&time);
}

static void each_scan_has_its_own(void **state)
{
	struct live_edge_time time = {0};

	assert_false(live_edge_time_left(&time, 0));
	live_edge_time_begin(&time, 0, PERIOD_NS);
	spend(&time, 1000, 1900);
	assert_false(live_edge_time_left(&time, 1000));
	live_edge_time_begin(&time, 0, PERIOD_NS);
	assert_true(live_edge_time_left(&time, 1000));
	live_edge_time_done(&time);
}

/* Time while others had the CPU is not charged. */
static void time_off_the_cpu(void **state)
{
	struct live_edge_time time = {0};

	live_edge_time_begin(&time, 0, PERIOD_NS);
	spend_time(&time, 1000, 3900, false);
	assert_true(live_edge_time_left(&time, 1000));
	spend(&time, 1000, 3900);
	assert_false(live_edge_time_left(&time, 1000));
	live_edge_time_done(&time);
}

static void owners_of_processes(void **state)
{
	struct live_edge_time time = {0};

	live_edge_time_begin(&time, 0, PERIOD_NS);
	assert_int_equal(live_edge_time_user(&time, getpid()), geteuid());
	assert_int_equal(live_edge_time_user(&time, INT32_MAX), ABSENT);
	live_edge_time_done(&time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_leaves_some_to_others),
		cmocka_unit_test(each_scan_has_its_own),
		cmocka_unit_test(time_off_the_cpu),
		cmocka_unit_test(owners_of_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
