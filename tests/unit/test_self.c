/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --self: the probes that are requested, what is new in an interval, output */
#include "unit.h"
#include "kernel/probe_table.h"
#include "live/live_options.h"
#include "render/renderer.h"
#include "sample/column.h"

#define MB (1024 * 1024)
#define BIT(group) (1u << (group))

static const struct source_status status_example = {
	.rate_hz = 20,
	.missed = {{.what = "late scans"}, {.what = "names beyond memory", .count = 7}},
	.missed_count = 2,
	.self =
		{
			.requested = true,
			.at_ns = 2 * NS_PER_SECOND,
			.cpu_ns = 25000000,
			.scans = 40,
			.window_ns = 60000000,
			.kept_count = 91,
			.start_cpu_ns = 6000000,
			.child_cpu_ns = 210400000,
			.resident_bytes = 5 * MB,
			.resident_most_bytes = 6 * MB,
			.programs_bytes = 32768,
			.programs = {{"sched_switch", "typed raw tracepoint", 51000000, 300000, 2,
				      3409},
				     {"thread_new", "kprobe", 0, 0, 0, 1245}},
			.program_count = 2,
			.maps = {{"ts_threads", 6948544}, {"ts_ticks", 688}},
			.map_count = 2,
		},
};

/* Rows of what was missed have a limit: rows beyond it are mentioned, and the next member is not
 * overwritten. */
static void missed_are_bounded(void **state)
{
	struct source_status status = {.absent_count = 7};

	assert_null(source_status_miss_any(&status, "nothing", 0));
	for (uint64_t i = 1; i <= SOURCE_MISSED_MAX; i++)
		assert_int_equal(source_status_miss(&status, "row", i)->count, i);
	assert_int_equal(status.missed_count, SOURCE_MISSED_MAX);
	source_status_miss_any(&status, "one too many", 5)->standing = true;
	assert_int_equal(status.missed_count, SOURCE_MISSED_MAX);
	assert_string_equal(status.missed[SOURCE_MISSED_MAX - 2].what, "row");
	assert_string_equal(status.missed[SOURCE_MISSED_MAX - 1].what, SOURCE_MISSED_MORE);
	assert_int_equal(status.missed[SOURCE_MISSED_MAX - 1].count, 1);
	assert_null(status.absent[0].why);
	assert_int_equal(status.absent_count, 7);
}

static void expect_shown(const struct source_status *status, size_t width, const char *expected)
{
	struct interval interval = {.status = status, .width = width};
	struct text text = {0};

	interval_add_self(&text, &interval);
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
}

static void cost_is_shown(void **state)
{
	expect_shown(
		&status_example, 80,
		"tsnap itself in 2.00 s: 25.0 ms of CPU time, 1.25 % of one CPU\n"
		"Scans: 40, each 0.63 ms of that; 20 a second are wanted\n"
		"Stacks of switches right before a scan: 3.0 % of the time, 46 stacks a second\n"
		"Start: 6.0 ms of CPU time, and 210.4 ms in the compile child\n"
		"Memory: 5120 KB resident, 6144 KB at most\n"
		"Missed: 0 late scans; 7 names beyond memory\n"
		"\n"
		"PROGRAM       KIND                  RUNS/S  NS/RUN  %CPU  SKIPPED  JITED\n"
		"sched_switch  typed raw tracepoint  150000     170  2.55        2   3409\n"
		"thread_new    kprobe                     0       -  0.00        0   1245\n"
		"all           -                     150000     170  2.55        2   4654\n"
		"\n"
		"KERNEL MEMORY      BYTES\n"
		"ts_threads       6948544\n"
		"ts_ticks             688\n"
		"programs           32768\n"
		"all              6982000\n");
}

/* Values of a kernel that does not count, and before the first scan. */
static void unknown_is_not_zero(void **state)
{
	struct source_status status = status_example;

	status.self.scans = 0;
	status.self.window_ns = status.self.kept_count = ABSENT;
	status.self.uncounted_why = "this kernel counts only with sysctl";
	status.self.resident_most_bytes = ABSENT;
	status.self.maps[1].kernel_bytes = ABSENT;
	status.self.program_count = 1;
	status.self.programs[0] =
		(struct self_program){"sched_switch", "kprobe", ABSENT, ABSENT, ABSENT, 3409};
	expect_shown(&status, 0,
		     "tsnap itself in 2.00 s: 25.0 ms of CPU time, 1.25 % of one CPU\n"
		     "Scans: 0; 20 a second are wanted\n"
		     "Start: 6.0 ms of CPU time, and 210.4 ms in the compile child\n"
		     "Memory: 5120 KB resident, - at most\n"
		     "Missed: 0 late scans; 7 names beyond memory\n"
		     "\n"
		     "PROGRAM       KIND    RUNS/S  NS/RUN  %CPU  SKIPPED  JITED\n"
		     "sched_switch  kprobe       -       -     -        -   3409\n"
		     "all           -            -       -     -        -   3409\n"
		     "Not counted: this kernel counts only with sysctl\n"
		     "\n"
		     "KERNEL MEMORY      BYTES\n"
		     "ts_threads       6948544\n"
		     "ts_ticks               -\n"
		     "programs           32768\n"
		     "all                    -\n");
}

/* No line is wider than the report, and the widest names are cut. */
static void fits_narrow_reports(void **state)
{
	struct interval interval = {.status = &status_example};

	for (interval.width = 30; interval.width < 100; interval.width++) {
		struct text text = {0};

		interval_add_self(&text, &interval);
		for (char *save = NULL, *line = strtok_r(text.bytes, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			assert_true(text_width(line) <= interval.width);
		text_done(&text);
	}
}

static void report_has_it_instead_of_its_footer(void **state)
{
	struct source_status status = status_example;
	struct column_list list = {0};
	struct grid grid = {.list = &list};
	struct tally tally = {.scans = 40, .elapsed_us = 2000000};
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status};
	struct text text = {0};

	status.own_cpu_ns = 25000000;
	status.own_ns = 2000000000;
	status.bpf_ns = status.bpf_runs = ABSENT;
	renderer_report.add(&text, &interval);
	assert_non_null(strstr(text_string(&text), "\nsched_switch  typed raw tracepoint"));
	assert_null(strstr(text_string(&text), "tsnap itself: "));
	text_clear(&text);
	status.self.requested = false;
	renderer_report.add(&text, &interval);
	assert_null(strstr(text_string(&text), "PROGRAM"));
	assert_non_null(strstr(text_string(&text),
			       "Missed: 7 names beyond memory\n"
			       "tsnap itself: 25.0 ms of CPU time, 1.25 % of one CPU\n"));
	text_done(&text);
}

static void pages_have_what_is_new(void **state)
{
	struct self_cost before = status_example.self, now = before;

	now.at_ns += NS_PER_SECOND;
	now.cpu_ns += 1000;
	now.scans += 20;
	now.kept_count += 6;
	now.programs[0].runs += 5;
	now.programs[0].ns += 700;
	now.programs[1].skipped = ABSENT; /* known before, not at present */
	now.resident_bytes += MB;
	self_cost_subtract(&now, &before);
	assert_int_equal(now.at_ns, NS_PER_SECOND);
	assert_int_equal(now.cpu_ns, 1000);
	assert_int_equal(now.scans, 20);
	assert_int_equal(now.window_ns, 0);
	assert_int_equal(now.kept_count, 6);
	assert_int_equal(now.programs[0].runs, 5);
	assert_int_equal(now.programs[0].ns, 700);
	assert_int_equal(now.programs[0].skipped, 0);
	assert_int_equal(now.programs[1].skipped, ABSENT);
	assert_int_equal(self_cost_programs(&now).skipped, ABSENT);
	/* values at present */
	assert_int_equal(now.resident_bytes, 6 * MB);
	assert_int_equal(now.child_cpu_ns, before.child_cpu_ns);
	assert_int_equal(now.programs[0].jited_bytes, 3409);
	assert_int_equal(self_cost_kernel_bytes(&now), 6982000);
}

static void parts_follow_needs(void **state)
{
	assert_int_equal(live_parts_of(0), 0);
	assert_int_equal(live_parts_of(NEED_COMM | NEED_USER), 0);
	assert_int_equal(live_parts_of(NEED_KSTACK), BIT(PART_STACKS));
	assert_int_equal(live_parts_of(sample_needs_close(NEED_CONNECTION)), BIT(PART_REGISTERS));
	assert_int_equal(live_parts_of(NEED_USTACK),
			 BIT(PART_REGISTERS) | BIT(PART_PROGRAM) | BIT(PART_STACKS));
	assert_int_equal(live_parts_of(NEED_TOTALS), BIT(PART_TOTALS));
	/* totals of exited threads */
	assert_int_equal(live_parts_of(NEED_PROCESSES), BIT(PART_TOTALS));
	assert_int_equal(live_parts_of(NEED_WAKER_PID), BIT(PART_WAKER));
	assert_int_equal(live_parts_of(UINT64_MAX), BIT(PART_COUNT) - 1);
}

/* Records are right whatever is requested; names change only for needs that read them. */
static void groups_follow_needs(void **state)
{
	const uint64_t always = GROUP_BIT(GROUP_SWITCH) | GROUP_BIT(GROUP_WAKE) |
				GROUP_BIT(GROUP_NEW) | GROUP_BIT(GROUP_EXEC) |
				GROUP_BIT(GROUP_EXIT) | GROUP_BIT(GROUP_CLOCK);

	assert_int_equal(live_groups_of(0), always);
	assert_int_equal(live_groups_of(NEED_TOTALS | NEED_WAKER), always);
	assert_int_equal(live_groups_of(NEED_SYSCALL), always | GROUP_BIT(GROUP_REQUEST));
	assert_int_equal(live_groups_of(NEED_COMM), always | GROUP_BIT(GROUP_NAME));
	assert_int_equal(live_groups_of(NEED_EXE), always | GROUP_BIT(GROUP_NAME));
	assert_int_equal(live_groups_of(NEED_USTACK),
			 always | GROUP_BIT(GROUP_REQUEST) | GROUP_BIT(GROUP_STACK));
	assert_int_equal(live_groups_of(NEED_BLOCK), always | GROUP_BIT(GROUP_BLOCK_QUEUE) |
							     GROUP_BIT(GROUP_BLOCK_ISSUE) |
							     GROUP_BIT(GROUP_BLOCK_DONE));
	assert_int_equal(live_groups_of(UINT64_MAX),
			 (GROUP_BIT(GROUP_OWN) - 1) &
				 ~(GROUP_BIT(GROUP_RETURN) | GROUP_BIT(GROUP_BLOCK_MERGE) |
				   GROUP_BIT(GROUP_THROTTLE) | GROUP_BIT(GROUP_UNTHROTTLE) |
				   GROUP_BIT(GROUP_CONNECTION) | GROUP_BIT(GROUP_SIGNAL) |
				   GROUP_BIT(GROUP_END) | GROUP_BIT(GROUP_PACKET_SENT) |
				   GROUP_BIT(GROUP_PACKET_RECEIVED)));
	/* columns that show a name, or what is looked up and kept */
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];
		/* texts of a stack, and of a program, are identified by the switch */
		bool text = column->kind == KIND_TEXT && strcmp(column->name, "syscall") &&
			    strcmp(column->name, "wchan") && column->needs != NEED_BLOCK &&
			    column->needs != NEED_IRQ &&
			    !(column->offset >= offsetof(struct sample, event) &&
			      column->offset < offsetof(struct sample, file)) &&
			    !(column->needs & (NEED_USTACK | NEED_KSTACK | NEED_STACK |
					       NEED_UFILES | NEEDS_OF_APP | NEED_QUERYSUM));

		if (text)
			assert_true(live_groups_of(sample_needs_close(column->needs)) &
				    GROUP_BIT(GROUP_NAME));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missed_are_bounded),
		cmocka_unit_test(cost_is_shown),
		cmocka_unit_test(unknown_is_not_zero),
		cmocka_unit_test(fits_narrow_reports),
		cmocka_unit_test(report_has_it_instead_of_its_footer),
		cmocka_unit_test(pages_have_what_is_new),
		cmocka_unit_test(groups_follow_needs),
		cmocka_unit_test(parts_follow_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
