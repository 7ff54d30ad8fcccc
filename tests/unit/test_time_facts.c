/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What threads did by step of time: times of samples are in the steps that they are of. */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "report/time_facts.h"
#include "report/value.h"

#include <stdio.h>

#define SECOND US_PER_SECOND
#define TIME(seconds) (1700000000 * SECOND + (int64_t)((seconds)*SECOND))

static struct column_list rows;
static struct time_facts facts;

static int begin(void **state)
{
	struct error e = {0};

	rows = (struct column_list){.count = 0};
	if (column_list_add(&rows, "comm,state,avg_thr", true, &e))
		return -1;
	facts = (struct time_facts){.rows = &rows};
	return 0;
}

static int end(void **state)
{
	time_facts_clear(&facts);
	return 0;
}

static struct sample sample_of(int64_t time_us, int64_t weight_us, const char *comm, int64_t of)
{
	struct sample sample = *sample_absent();

	sample.scan = (struct sample_scan){.time_us = time_us, .weight_us = weight_us};
	sample.thread.comm = name_of_string(comm);
	sample.now.state = of;
	return sample;
}

/* Takes a scan of one sample. */
static void scan(int64_t time_us, int64_t weight_us, const char *comm, int64_t of)
{
	struct sample sample = sample_of(time_us, weight_us, comm, of);
	struct scan scan = {.time_us = time_us, .weight_us = weight_us};

	time_facts_begin(&facts, &scan);
	time_facts_add(&facts, &sample, false);
	time_facts_end(&facts, &scan);
}

/* The time of a state in the step of that time. */
static int64_t at(int64_t time_us, int64_t of)
{
	const struct time_cell *cell = facts.cells.rows;
	const struct time_fact *fact = facts.facts.rows;
	int64_t us = 0;

	for (size_t i = 0; i < facts.cells.count; i++)
		if (fact[cell[i].fact].state == of && cell[i].step == time_us / facts.step_us)
			us += cell[i].us;
	return us;
}

static int64_t scanned(int64_t time_us)
{
	const struct time_step_scanned *step = facts.steps.rows;

	for (size_t i = 0; i < facts.steps.count; i++)
		if (step[i].step == time_us / facts.step_us)
			return step[i].us;
	return 0;
}

static int64_t all(int64_t of)
{
	const struct time_cell *cell = facts.cells.rows;
	const struct time_fact *fact = facts.facts.rows;
	int64_t us = 0;

	for (size_t i = 0; i < facts.cells.count; i++)
		us += fact[cell[i].fact].state == of ? cell[i].us : 0;
	return us;
}

/* A sample stands for the time before it, and falls into the steps of that time. */
static void time_is_spread(void **state)
{
	scan(TIME(0.05), 50000, "a", STATE_ON);
	scan(TIME(0.13), 80000, "a", STATE_ON);
	assert_int_equal(facts.step_us, 100000);
	assert_int_equal(at(TIME(0), STATE_ON), 100000);
	assert_int_equal(at(TIME(0.1), STATE_ON), 30000);
	assert_int_equal(scanned(TIME(0)), 100000);
	assert_int_equal(scanned(TIME(0.1)), 30000);
	scan(TIME(1.23), 1100000, "a", STATE_DISK);
	assert_int_equal(at(TIME(0.1), STATE_DISK), 70000);
	assert_int_equal(at(TIME(0.5), STATE_DISK), 100000);
	assert_int_equal(at(TIME(1.2), STATE_DISK), 30000);
	assert_int_equal(all(STATE_DISK), 1100000);
	assert_int_equal(facts.last - facts.first, 12);
}

/* A sample that stands for more threads than one has the time of its scan, not a longer one before
 * it; one for scans that skipped the thread has the time after it. */
static void more_than_its_scan(void **state)
{
	struct scan one = {.time_us = TIME(1), .weight_us = 100000};
	struct sample sample = sample_of(TIME(1), 400000, "a", STATE_SLEEP);

	time_facts_begin(&facts, &one);
	time_facts_add(&facts, &sample, false);
	assert_int_equal(at(TIME(0.9), STATE_SLEEP), 400000);
	time_facts_add(&facts, &sample, true);
	assert_int_equal(at(TIME(0.9), STATE_SLEEP), 400000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(at(TIME(1) + i * 100000, STATE_SLEEP), 100000);
}

/* Steps become longer, and nothing is lost. */
static void steps_become_longer(void **state)
{
	static const int64_t expected[] = {100000, 500000, 1000000, 5000000, 10000000, 30000000};
	size_t kind = 0;

	for (int second = 0; second < 7200; second++) {
		scan(TIME(second + 0.05), 50000, "a", second % 2 ? STATE_ON : STATE_RQ);
		while (kind + 1 < 6 && facts.step_us > expected[kind])
			kind++;
		assert_int_equal(facts.step_us, expected[kind]);
		assert_true(facts.last - facts.first < STEPS_MAX);
		assert_true(facts.steps.count <= STEPS_MAX);
	}
	assert_int_equal(facts.step_us, 30000000);
	assert_int_equal(all(STATE_ON), 3600 * 50000);
	assert_int_equal(all(STATE_RQ), 3600 * 50000);
	assert_int_equal(scanned(TIME(3600)), 30 * 50000);
}

/* Where most scans are farther apart than the first two, steps become as long as that. One late
 * scan changes nothing. */
static void steps_fit_scans(void **state)
{
	scan(TIME(0.002), 2000, "a", STATE_ON);
	for (int second = 1; second <= 30; second++)
		scan(TIME(second), SECOND + second % 3 * 200000, "a", STATE_RQ);
	assert_int_equal(facts.step_us, SECOND);
	end(state);
	assert_int_equal(begin(state), 0);
	for (int tick = 1; tick <= 300; tick++)
		scan(TIME(tick * 0.05), tick % 3 ? 50000 : 400000, "a", STATE_ON);
	assert_int_equal(facts.step_us, 100000);
}

/* A silence is of no thread, but it was scanned. */
static void silence_is_scanned(void **state)
{
	struct scan later = {
		.time_us = TIME(7201), .weight_us = SECOND, .silent_us = 7199 * SECOND};

	scan(TIME(1), SECOND, "a", STATE_ON);
	time_facts_begin(&facts, &later);
	time_facts_end(&facts, &later);
	assert_int_equal(facts.step_us, 30000000);
	assert_int_equal(scanned(TIME(3600)), 30 * SECOND);
	assert_int_equal(at(TIME(3600), STATE_ON), 0);
	assert_int_equal(all(STATE_ON), SECOND);
}

/* Clocks that go back, and recordings with any time. */
static void any_time(void **state)
{
	static const int64_t times[] = {0, -62000000000000000, 253402300799999999, -1, 1};

	scan(TIME(1), SECOND, "a", STATE_ON);
	scan(TIME(0), SECOND, "a", STATE_ON);
	assert_int_equal(at(TIME(0.5), STATE_ON), SECOND);
	assert_int_equal(at(TIME(-0.5), STATE_ON), SECOND);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		scan(times[i], SECOND, "a", STATE_ON);
		assert_true(facts.last - facts.first < STEPS_MAX);
	}
	assert_int_equal(all(STATE_ON), 7 * SECOND);
	scan(TIME(0), INT64_MAX, "a", STATE_DISK);
	assert_true(facts.last - facts.first < STEPS_MAX);
}

/* Samples with the same keys are of the row that has them. */
static void rows_have_their_samples(void **state)
{
	const struct time_fact *fact;
	union value row[] = {
		{.text = name_of_string("b")}, {.number = STATE_RQ}, {.number = 12345}};

	scan(TIME(1), SECOND, "a", STATE_RQ);
	scan(TIME(2), SECOND, "b", STATE_RQ);
	scan(TIME(3), SECOND, "b", STATE_RQ);
	assert_int_equal(facts.facts.count, 2);
	fact = facts.facts.rows;
	assert_true(fact[1].row == time_facts_row(&rows, row));
	assert_true(fact[0].row != time_facts_row(&rows, row));
	assert_int_equal(fact[1].weight_us, 2 * SECOND);
	assert_string_equal(fact[1].wait, "a CPU");
}

/* Too many facts: the time stays, by state and wait, and at last by state. */
static void more_facts_than_kept(void **state)
{
	const struct time_fact *fact;
	int rowless = 0;
	char name[16];

	for (int i = 0; i < (int)TIME_FACTS_MAX + 3000; i++) {
		struct sample sample = sample_of(TIME(1), 1000, "a", STATE_DISK);

		snprintf(name, sizeof(name), "%d", i);
		sample.thread.comm = name_of_string(name);
		sample.io.dev = i > (int)TIME_FACTS_MAX + 100 ? name_of_string(name) : "sda";
		time_facts_add(&facts, &sample, false);
	}
	assert_int_equal(facts.facts.count, TIME_FACTS_MAX + TIME_WAITS_MAX + 1);
	assert_int_equal(all(STATE_DISK), (TIME_FACTS_MAX + 3000ll) * 1000);
	fact = facts.facts.rows;
	for (size_t i = 0; i < facts.facts.count; i++)
		rowless += !fact[i].row;
	assert_int_equal(rowless, TIME_WAITS_MAX + 1);
	assert_string_equal(fact[TIME_FACTS_MAX].wait, "disk sda");
	assert_int_equal(fact[TIME_FACTS_MAX].weight_us, 101000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(time_is_spread, begin, end),
		cmocka_unit_test_setup_teardown(more_than_its_scan, begin, end),
		cmocka_unit_test_setup_teardown(steps_become_longer, begin, end),
		cmocka_unit_test_setup_teardown(steps_fit_scans, begin, end),
		cmocka_unit_test_setup_teardown(silence_is_scanned, begin, end),
		cmocka_unit_test_setup_teardown(any_time, begin, end),
		cmocka_unit_test_setup_teardown(rows_have_their_samples, begin, end),
		cmocka_unit_test_setup_teardown(more_facts_than_kept, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
