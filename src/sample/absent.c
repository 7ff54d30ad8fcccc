/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples with all or some fields absent, made by the table of columns. */
#include "sample/proc_values.h"

#include <string.h>

static struct sample absent = {
	/* members that are not columns */
	.thread.start_ns = ABSENT,   .sums.forks = ABSENT,	 .sums.execs = ABSENT,
	.sums.exits = ABSENT,	     .sums.dead_cpu_us = ABSENT, .sums.new_threads = ABSENT,
	.sums.hardirq_us = ABSENT,   .sums.softirq_us = ABSENT,	 .sums.steal_us = ABSENT,
	.makers.thread_pid = ABSENT, .makers.fork_pid = ABSENT,	 .wait.before_us = ABSENT,
	.event.sent = ABSENT,	     .event.received = ABSENT,	 .event.connect_ns = ABSENT,
	.event.retransmits = ABSENT,
};

/* Fills absent before main(), so that any thread may read it. */
__attribute__((constructor)) static void absent_make(void)
{
	for (size_t i = 0; i < sample_column_count; i++)
		if (sample_columns[i].kind != KIND_TEXT &&
		    !column_is_proc_value(&sample_columns[i]))
			column_set(&sample_columns[i], &absent, (union value){.number = ABSENT});
}

void sample_absent_add(const struct column *column)
{
	if (column->kind != KIND_TEXT)
		column_set(column, &absent, (union value){.number = ABSENT});
}

const struct sample *sample_absent(void)
{
	return &absent;
}

void sample_process_fill(struct sample_process *process, const struct sample_process *facts)
{
	char *to = (char *)process;
	const char *from = (const char *)facts, *none = (const char *)&absent.process;
	enum { BYTES = sizeof(process->ppid) };

	_Static_assert(sizeof(process->exe) == BYTES, "all members have one size");
	for (size_t at = 0; at < sizeof(*process); at += BYTES)
		if (!memcmp(to + at, none + at, BYTES))
			memcpy(to + at, from + at, BYTES);
}

void sample_sums_add(struct sample_sums *to, const struct sample_sums *more)
{
	int64_t *sums = &to->cpu_us;
	const int64_t *added = &more->cpu_us;

	_Static_assert(sizeof(*to) % sizeof(*sums) == 0, "nothing but numbers");
	for (size_t i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		if (added[i] != ABSENT)
			sums[i] = sums[i] == ABSENT ? added[i] : sums[i] + added[i];
}

struct sample sample_account(const struct sample *sample)
{
	struct sample account = absent;

	account.thread = sample->thread;
	account.namespace = sample->namespace;
	account.process = sample->process;
	account.cgroup = sample->cgroup;
	account.sums = sample->sums;
	account.sums.forks = account.sums.execs = account.sums.exits = ABSENT;
	account.sums.dead_cpu_us = account.sums.new_threads = ABSENT;
	account.sums.hardirq_us = account.sums.softirq_us = account.sums.steal_us = ABSENT;
	return account;
}
