/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of options, and the tables that its rows refer to by name. */
#include "cli/option_table.h"
#include "render/renderer.h"

#include "unit.h"

/* An option of MODE_FORMAT has the format of its name. */
static void formats_have_renderers(void **state)
{
	size_t formats = 0;

	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_table[i];
		const struct renderer *format = row->format;

		assert_int_equal(row->mode == MODE_FORMAT, format != NULL);
		if (!format)
			continue;
		formats++;
		assert_string_equal(format->name, row->name);
		/* the path of the output can be checked */
		if (format->whole)
			assert_non_null(row->argument);
		if (format->of_groups)
			assert_true(format->of_groups->grouped && !format->grouped);
	}
	assert_true(formats >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_have_renderers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
