/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples with all or some fields absent, made by the table of columns. */
#include "sample/proc_values.h"

#include <string.h>

static struct sample absent = {
	/* members that are not columns */
	.start_ns = ABSENT,
	.forks = ABSENT,
	.execs = ABSENT,
	.exits = ABSENT,
	.dead_cpu_us = ABSENT,
	.new_threads = ABSENT,
	.thread_maker_pid = ABSENT,
	.forker_pid = ABSENT,
	.waited_before_us = ABSENT,
};

/* Fills absent before main(), so that any thread may read it. */
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

#define AT(member) offsetof(struct sample, member)

/* Copies the fields from offset `from` up to offset `end`. */
static void fields_copy(struct sample *to, const struct sample *sample, size_t from, size_t end)
{
	memcpy((char *)to + from, (const char *)sample + from, end - from);
}

struct sample sample_account(const struct sample *sample)
{
	struct sample account = absent;

	fields_copy(&account, sample, AT(tid), AT(state));
	fields_copy(&account, sample, AT(cpu_us), AT(forks));
	return account;
}
