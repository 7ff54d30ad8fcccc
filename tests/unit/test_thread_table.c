/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include "maps/thread_table.h"

/* The newest slots are mapped on demand, and must not be touched before. */
static void records_that_are_mapped(void **state)
{
	struct thread_state records[3] = {{.key = 0}};
	struct thread_table table = {.entries_max = 8};

	assert_null(thread_table_mapped(&table, 0));
	table.mapped = records;
	table.mapped_bytes = sizeof(records) - 1;
	assert_ptr_equal(thread_table_mapped(&table, 1), &records[1]);
	assert_null(thread_table_mapped(&table, 2));
	assert_null(thread_table_mapped(&table, 7));
	assert_null(thread_table_mapped(&table, UINT32_MAX));
}

/* Lookup of a record in place: the thread sleeps on, was woken, runs, is another one, is being
 * switched. */
static void thread_that_sleeps_on(void **state)
{
	struct thread_state record = {.key = 0};
	struct thread_table table = {.entries_max = 1, .mapped = &record};

	table.mapped_bytes = sizeof(record);
	record.sched.tid = 17;
	record.sched.out_ns = 500;
	record.sched.sequence_begun = record.sched.sequence_done = 8;
	record.wake.wake_ns = 400;
	assert_true(thread_table_is_out(&table, 0, 17, 8));
	assert_true(thread_table_is_asleep(&table, 0, 17, 8));
	record.wake.wake_ns = 501;
	assert_true(thread_table_is_out(&table, 0, 17, 8));
	assert_false(thread_table_is_asleep(&table, 0, 17, 8));
	assert_false(thread_table_is_out(&table, 0, 18, 8));
	assert_false(thread_table_is_out(&table, 0, 17, 6));
	record.sched.on_cpu = 1;
	assert_false(thread_table_is_out(&table, 0, 17, 8));
	record.sched.on_cpu = 0;
	record.sched.sequence_begun = 9;
	assert_false(thread_table_is_out(&table, 0, 17, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_that_are_mapped),
		cmocka_unit_test(thread_that_sleeps_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
