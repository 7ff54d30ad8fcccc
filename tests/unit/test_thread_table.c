/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include "maps/thread_table.h"

/* The newest slots are mapped when they are asked for, and must not be touched before. */
static void records_that_are_mapped(void **state)
{
	struct thread_state records[3] = {{.key = 0}};
	struct thread_table table = {.entries_max = 8};

	(void)state;
	assert_null(thread_table_mapped(&table, 0));
	table.mapped = records;
	table.mapped_bytes = sizeof(records) - 1;
	assert_ptr_equal(thread_table_mapped(&table, 1), &records[1]);
	assert_null(thread_table_mapped(&table, 2));
	assert_null(thread_table_mapped(&table, 7));
	assert_null(thread_table_mapped(&table, UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_that_are_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
