/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stacks of a report's lines: found by the line's keys, in order, and counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/names.h"
#include "render/renderer.h"
#include "report/stack_lines.h"
#include "unit.h"

static const struct exact_note unnoted = {.part = EXACT_PART_NONE, .began = true};

static struct sample sample_of(const char *comm, int64_t tid, const char *stack)
{
	struct sample sample = *sample_absent();

	sample.scan.time_us = 1;
	sample.scan.weight_us = 1000;
	sample.now.state = STATE_ON;
	sample.thread.comm = name_of_string(comm);
	sample.thread.tid = tid;
	sample.stack.both = name_of_string(stack);
	return sample;
}

/* Checks the stacks of a line and their time in us, as "a 2000, b 1000". */
static void expect_line(const struct stack_lines *lines, size_t line, const char *expected)
{
	struct text text = {0};

	for (size_t at = STACK_LINE_NONE;
	     (at = stack_lines_next(lines, line, at)) != STACK_LINE_NONE;) {
		const char *frames = stack_line_frames(lines, at);

		text_add_format(&text, "%s%s %lld", text.length ? ", " : "", frames ? frames : "-",
				(long long)stack_line_weight_us(lines, at));
	}
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
}

static void stacks_are_those_of_their_line(void **state)
{
	static const struct {
		const char *comm;
		int64_t tid;
		const char *stack;
	} samples[] = {
		{"x", 1, "a"}, {"x", 1, "b"}, {"x", 2, "b"},  {"x", 1, NULL},
		{"y", 1, "a"}, {"x", 1, "b"}, {NULL, 1, "a"},
	};
	struct column_list list = {.count = 0};
	struct stack_lines lines;
	struct group_table groups;
	struct grid report = {0};
	struct tally tally = {.scans = 1, .samples = 7};
	struct error e = {0};

	assert_int_equal(column_list_add(&list, "samples,comm,share,tid", true, &e), 0);
	group_table_init(&groups, &list);
	stack_lines_init(&lines, 3, &list, false);
	assert_true(stack_lines_needs(&lines) & NEED_STACK);
	for (int interval = 0; interval < 2; interval++) {
		for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
			struct sample sample =
				sample_of(samples[i].comm, samples[i].tid, samples[i].stack);

			group_table_add(&groups, &sample);
			stack_lines_add(&lines, &sample, unnoted);
		}
		grid_fill_groups(&report, &groups, &tally);
		stack_lines_fill(&lines, &report, &tally);
		assert_int_equal(report.row_count, 4);
		expect_line(&lines, 0, "b 2000, - 1000, a 1000");
		expect_line(&lines, 1, "a 1000"); /* line without a name: absent sorts first */
		expect_line(&lines, 2, "b 1000");
		expect_line(&lines, 3, "a 1000");
		assert_int_equal(lines.samples, 7);
		assert_int_equal(lines.known, 6);
		group_table_clear(&groups);
		stack_lines_clear(&lines);
	}
	stack_lines_done(&lines);
	group_table_done(&groups);
	grid_done(&report);
	names_clear();
}

static void nothing_asked_is_nothing(void **state)
{
	struct sample sample = sample_of("x", 1, "a");
	struct column_list list = {.count = 0};
	struct stack_lines lines;

	stack_lines_init(&lines, 0, &list, false);
	stack_lines_add(&lines, &sample, unnoted);
	assert_int_equal(lines.samples, 0);
	assert_int_equal(stack_lines_needs(&lines), 0);
	stack_lines_clear(&lines);
	stack_lines_done(&lines);
	names_clear();
}

/* Frames of a recording may end with the mark that separates a waker's. */
static void no_waker_behind_its_mark(void **state)
{
	static const char stack[] =
		"main;a_function_whose_name_fills_the_buffer_to_its_last_byte;--";
	struct sample sample = sample_of("x", 1, stack);
	struct column_list list = {.count = 0};
	struct tally tally = {.scans = 1, .samples = 1};
	struct stack_lines lines;
	struct group_table groups;
	struct grid report = {0};
	struct text out = {0};
	struct error e = {0};

	assert_int_equal(sizeof(stack), 64); /* initial capacity of a text */
	column_list_add(&list, "comm", true, &e);
	group_table_init(&groups, &list);
	stack_lines_init(&lines, 3, &list, false);
	group_table_add(&groups, &sample);
	stack_lines_add(&lines, &sample, unnoted);
	grid_fill_groups(&report, &groups, &tally);
	stack_lines_fill(&lines, &report, &tally);
	interval_add_stacks(&out, &(struct interval){.grid = &report, .stacks = &lines}, 0);
	assert_string_equal(text_string(&out),
			    "      100.0%  user    main > "
			    "a_function_whose_name_fills_the_buffer_to_its_last_byte\n");
	text_done(&out);
	stack_lines_done(&lines);
	group_table_done(&groups);
	grid_done(&report);
	names_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_those_of_their_line),
		cmocka_unit_test(nothing_asked_is_nothing),
		cmocka_unit_test(no_waker_behind_its_mark),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
