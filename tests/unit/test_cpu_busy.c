/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Busy time of CPUs from /proc/stat, and the report's line where exact times differ from it;
 * pressure as a share of time */
#include "unit.h"
#include "base/clock.h"
#include "base/text.h"
#include "proc/cpu_busy.h"
#include "render/renderer.h"
#include "sample/sample.h"

#define SECOND US_PER_SECOND

static void lines_of_cpus(void **state)
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK);
	struct cpu_busy busy;

	assert_int_equal(cpu_busy_parse("cpu  9 9 9 9 9 9 9 9 0 0\n"
					"cpu0 1 2 3 400 50 6 7 8 0 0\n"
					"cpu12 1 2 3 40 5 60 70 8 0 0\n"
					"intr 5 5\n",
					&busy),
			 0);
	assert_int_equal(busy.cpus, 2);
	assert_int_equal(busy.idle_us, 495 * tick_us);
	assert_int_equal(busy.interrupt_us, 143 * tick_us);
}

static void what_is_taken(void **state)
{
	int64_t tick_us = US_PER_SECOND / sysconf(_SC_CLK_TCK);
	struct source_cpu taken[SOURCE_CPUS_MAX], before[SOURCE_CPUS_MAX];
	size_t count;

	assert_int_equal(cpu_taken_parse("cpu  9 9 9 9 9 9 9 9 0 0\n"
					 "cpu0 1 2 3 400 50 6 7 8 0 0\n"
					 "cpu12 1 2 3 40 5 60 70 80 0 0\n"
					 "intr 5 5\n",
					 before),
			 2);
	count = cpu_taken_parse("cpu  9 9 9 9 9 9 9 9 0 0\n"
				"cpu3 1 2 3 400 50 6 7 8 0 0\n"
				"cpu12 1 2 3 40 5 61 69 83 0 0\n"
				"intr 5 5\n",
				taken);
	/* a CPU that came is not known; a count may fall by a little */
	assert_int_equal(source_cpus_since(taken, count, before, 2), 1);
	assert_int_equal(taken[0].cpu, 12);
	assert_int_equal(taken[0].taken_us[CPU_USE_HARDIRQ], tick_us);
	assert_int_equal(taken[0].taken_us[CPU_USE_SOFTIRQ], 0);
	assert_int_equal(taken[0].taken_us[CPU_USE_STEAL], 3 * tick_us);
	assert_int_equal(cpu_taken_parse("cpu0 1 2 3 4 5 6 7 8\ncpu1 1 2", taken), 0);
	assert_true(cpu_taken_read("/proc", taken) > 0);
}

static void broken_lines(void **state)
{
	static const char *const wrong[] = {
		"",
		"intr 5\n",
		"cpu  1 2 3 4 5 6 7 8\nintr 5\n",
		"cpu0 1 2 3 4 5 6 7\nintr 5\n",
		"cpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3", /* cut off */
		"cpu0 1 2 3 4 5 6 7 8\n",
	};
	struct cpu_busy busy;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(cpu_busy_parse(wrong[i], &busy), -EINVAL);
		assert_int_equal(busy.cpus, 0);
	}
	cpu_busy_read("/nowhere", &busy);
	assert_int_equal(busy.cpus, 0);
	cpu_busy_read("/proc", &busy);
	assert_true(busy.cpus > 0);
	assert_true(busy.at_ns > 0);
}

static void between_two(void **state)
{
	struct cpu_busy from = {.at_ns = NS_PER_SECOND, .cpus = 2, .idle_us = 100};
	struct cpu_busy to = {.at_ns = 2 * NS_PER_SECOND, .cpus = 2, .idle_us = 100 + 500000};

	assert_int_equal(cpu_busy_between(&from, &to), 2 * SECOND - 500000);
	to.cpus = 3;
	assert_int_equal(cpu_busy_between(&from, &to), ABSENT);
	to.cpus = 2;
	to.idle_us = 99;
	assert_int_equal(cpu_busy_between(&from, &to), ABSENT);
	from.cpus = to.cpus = 0;
	assert_int_equal(cpu_busy_between(&from, &to), ABSENT);
}

/* The readings of pressure are further apart than the times of the first scan and of the last. */
static void pressure_between_readings(void **state)
{
	struct source_status status = {.cpus = 2, .own_cpu_ns = ABSENT, .bpf_ns = ABSENT};
	struct tally tally = {.scans = 20, .elapsed_us = SECOND};
	struct column_list list = {0};
	struct grid grid = {.list = &list};
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status};
	struct text text = {0};

	status.pressure[RESOURCE_CPU] =
		(struct source_pressure){.known = true, .some_us = 1030000, .read_us = 1030000};
	status.pressure[RESOURCE_IO] = (struct source_pressure){
		.known = true, .some_us = 515000, .full_us = 103000, .read_us = 1030000};
	renderer_report.add(&text, &interval);
	assert_non_null(strstr(text_string(&text),
			       "of the host: CPU some 100.0 %, I/O some 50.0 % full 10.0 %\n"));
	text_done(&text);
}

/* True if a report of 10 s on two CPUs says that exact times are uncertain. */
static bool doubted(int64_t cpu_us, int64_t own_us, int64_t busy_us, int64_t error_us)
{
	struct source_status status = {.cpus = 2,
				       .rate_hz = ABSENT,
				       .bpf_ns = ABSENT,
				       .own_cpu_ns = own_us * NS_PER_US,
				       .busy_us = busy_us,
				       .busy_checks = true,
				       .busy_error_us = error_us};
	struct tally tally = {.scans = 200, .elapsed_us = 10 * SECOND, .cpu_us = cpu_us};
	struct column_list list = {0};
	struct grid grid = {.list = &list};
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status};
	struct text text = {0};
	const char *line;
	bool reported;

	renderer_report.add(&text, &interval);
	line = strstr(text_string(&text), "Exact times may be wrong: all rows and tsnap itself ");
	reported = line && strstr(line, " (/proc/stat)\n");
	text_done(&text);
	return reported;
}

static void compared(void **state)
{
	int64_t most = 20 * SECOND / 50 + 40000;

	assert_false(doubted(20 * SECOND, 0, 20 * SECOND, 0));
	assert_false(doubted(20 * SECOND + most, 0, 20 * SECOND, 0));
	assert_true(doubted(20 * SECOND + most + 1, 0, 20 * SECOND, 0));
	assert_true(doubted(20 * SECOND, most + 1, 20 * SECOND, 0));
	assert_false(doubted(20 * SECOND, most + 1, 20 * SECOND, 1));
	assert_false(doubted(20 * SECOND - most, 0, 20 * SECOND, 0));
	assert_true(doubted(20 * SECOND - most - 1, 0, 20 * SECOND, 0));
	/* idle: interrupts may be busy time, but sleepers use none */
	assert_false(doubted(1, 0, 4 * SECOND, 0));
	assert_true(doubted(4 * SECOND, 0, SECOND, 0));
	/* not known, or not of all threads */
	assert_false(doubted(20 * SECOND, 0, ABSENT, 0));
	assert_false(doubted(0, 0, 20 * SECOND, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_cpus), cmocka_unit_test(broken_lines),
		cmocka_unit_test(between_two),	 cmocka_unit_test(pressure_between_readings),
		cmocka_unit_test(compared),	 cmocka_unit_test(what_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
