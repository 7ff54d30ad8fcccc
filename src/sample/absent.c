/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples with all or some fields absent, made by the table of columns. */
#include "sample/proc_values.h"

static struct sample absent = {
	/* what is no column */
	.start_ns = ABSENT, .forks = ABSENT,	   .execs = ABSENT,
	.exits = ABSENT,    .dead_cpu_us = ABSENT,
};

/* Before main(), so that any thread may read it. */
__attribute__((constructor)) static void absent_make(void)
{
	for (size_t i = 0; i < sample_column_count; i++)
		if (sample_columns[i].kind != KIND_TEXT &&
		    !column_is_proc_value(&sample_columns[i]))
			column_set(&sample_columns[i], &absent, (union value){.number = ABSENT});
}

const struct sample *sample_absent(void)
{
	return &absent;
}

struct sample sample_account(const struct sample *sample)
{
	struct sample account = absent;

	account.start_ns = sample->start_ns;
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (column_is_kept(column) || column->needs & (NEED_TOTALS | NEED_SLEEP))
			column_set(column, &account, column_read(column, sample));
	}
	return account;
}
