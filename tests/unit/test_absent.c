/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live_absent, and how reports and rows show it; the sections of --list */
#include "unit.h"
#include "live/scan/live_absent.h"
#include "kernel/probe_table.h"
#include "report/grid.h"
#include "render/renderer.h"
#include "report/tally.h"

static void only_what_was_asked_for_is_told(void **state)
{
	struct source_status status = {0};
	struct kernel kernel = {0};

	live_absent_describe(&kernel, 0, &status);
	assert_int_equal(status.absent_count, 0);
	live_absent_describe(&kernel, NEED_SYSCALL | NEED_WAKER, &status);
	assert_int_equal(status.absent_count, 2);
	status.absent_count = 0;
	live_absent_describe(&kernel, NEED_WAIT_CLASS, &status);
	assert_int_equal(status.absent_count, 1);
	assert_non_null(strstr(status.absent[0].why, "no sleeping thread counts as work"));
	status.absent_count = 0;
	kernel.compiled.stack_registers = 16344;
	live_absent_describe(&kernel, NEED_SYSCALL | NEED_WAKER, &status);
	assert_int_equal(status.absent_count, 1);
	assert_int_equal(status.absent[0].needs, NEED_WAKER);
	status.absent_count = 0;
	kernel.plan.chosen[GROUP_WAKE] = &probe_rows[0];
	live_absent_describe(&kernel, NEED_SYSCALL | NEED_CALL_TIME, &status);
	assert_int_equal(status.absent_count, 1);
	assert_int_equal(status.absent[0].needs, NEED_CALL_TIME);
	status.absent_count = 0;
	kernel.plan.chosen[GROUP_CALL] = &probe_rows[0];
	live_absent_describe(&kernel, ~(uint64_t)(NEED_TRACE | NEED_CONTEXT | NEED_CACHE), &status);
	assert_int_equal(status.absent_count, 0);
	/* the program that asks for a thread's pointer was not loaded */
	live_absent_describe(&kernel, NEED_TRACE, &status);
	assert_int_equal(status.absent_count, 1);
	assert_non_null(strstr(status.absent[0].why, "from 5.10 on, with BTF"));
}

static void assert_told(const char *columns, uint64_t needs, const char *expected)
{
	const struct source_absent absent = {needs, "no way"};
	struct source_status status = {
		.own_cpu_ns = ABSENT, .bpf_ns = ABSENT, .absent = {absent}, .absent_count = 1};
	struct column_list list = {0};
	struct grid grid = {.list = &list};
	struct tally tally = {.scans = 1, .elapsed_us = 1};
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status};
	struct text text = {0}, line = {0};
	struct error e = {0};

	assert_int_equal(column_list_add(&list, columns, true, &e), 0);
	absent_add(&text, &list, &absent);
	assert_string_equal(text_string(&text), expected);
	text_add_format(&line, "\nAbsent on this host: %s\n", expected);
	text_clear(&text);
	renderer_report.add(&text, &interval);
	assert_non_null(strstr(text_string(&text), text_string(&line)));
	text_done(&text);
	text_done(&line);
}

static void columns_are_named(void **state)
{
	assert_told("state,syscall,comm,filename", NEED_SYSCALL, "syscall, filename: no way");
	assert_told("state,syscall,comm,filename", NEED_FILE, "filename: no way");
	assert_told("state", NEED_FILE, "what the filter needs: no way");
}

/* Checks that each section begins at a column, in the order of the columns. */
static void sections_are_sound(void **state)
{
	const struct column *before = NULL;

	assert_string_equal(column_sections[0].first, sample_columns[0].name);
	for (size_t i = 0; i < column_section_count; i++) {
		const struct column *first = sample_column_find(column_sections[i].first);

		assert_true(first && first > before && *column_sections[i].name);
		before = first;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_asked_for_is_told),
		cmocka_unit_test(columns_are_named),
		cmocka_unit_test(sections_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
