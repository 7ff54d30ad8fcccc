/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_dead.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dead_row {
	char comm[THREAD_COMM_SIZE];
	int64_t uid;
	struct process_totals before; /* as the kernel's table had it */
	/* to be told: */
	struct live_totals left;
	int64_t forks, execs, exits, cpu_ns;
};

static uint64_t row_key(const char *comm, int64_t uid)
{
	char bytes[sizeof(uid) + THREAD_COMM_SIZE];
	size_t length = strnlen(comm, THREAD_COMM_SIZE - 1);

	memcpy(bytes, &uid, sizeof(uid));
	memcpy(bytes + sizeof(uid), comm, length);
	return hash_bytes(bytes, sizeof(uid) + length);
}

static struct dead_row *row_of(struct dead_table *table, const char *comm, int64_t uid)
{
	bool added;
	struct dead_row *row = keyed_put(&table->rows, sizeof(*row), row_key(comm, uid), &added);

	if (added) {
		row->uid = uid;
		memcpy(row->comm, comm, strnlen(comm, THREAD_COMM_SIZE - 1));
	}
	return row;
}

void dead_table_read(struct dead_table *table, const struct process_key *key,
		     const struct process_totals *now, bool baseline)
{
	bool others = key->uid == PROCESS_OTHERS_UID && !key->comm[0];
	struct dead_row *row = row_of(table, others ? OTHERS_COMM : (const char *)key->comm,
				      others ? ABSENT : key->uid);
	struct process_totals before = row->before;

	row->before = *now;
	if (others)
		table->full = memcmp(now, &(struct process_totals){0}, sizeof(*now)) != 0;
	if (baseline)
		return;
	row->forks += (int64_t)(now->forks - before.forks);
	row->execs += (int64_t)(now->execs - before.execs);
	row->exits += (int64_t)(now->exits - before.exits);
	row->cpu_ns += (int64_t)(now->cpu_ns - before.cpu_ns);
	row->left.cpu_ns += (int64_t)(now->cpu_ns - before.cpu_ns);
	row->left.runq_ns += (int64_t)(now->runq_ns - before.runq_ns);
	row->left.disk_ns += (int64_t)(now->disk_ns - before.disk_ns);
	row->left.sleep_ns += (int64_t)(now->sleep_ns - before.sleep_ns);
	row->left.voluntary_count += (int64_t)(now->voluntary_count - before.voluntary_count);
	row->left.involuntary_count += (int64_t)(now->involuntary_count - before.involuntary_count);
	table->unknown += now->unknown - before.unknown;
	if (others)
		table->others += now->forks - before.forks + now->execs - before.execs +
				 now->exits - before.exits;
}

void dead_table_take_off(struct dead_table *table, const struct totals_gone *gone)
{
	struct live_totals *left;

	if (!gone->comm)
		return;
	if (table->full &&
	    !keyed_find(&table->rows, sizeof(struct dead_row), row_key(gone->comm, gone->uid)))
		left = &row_of(table, OTHERS_COMM, ABSENT)->left;
	else
		left = &row_of(table, gone->comm, gone->uid)->left;
	left->cpu_ns -= gone->told.cpu_ns;
	left->runq_ns -= gone->told.runq_ns;
	left->disk_ns -= gone->told.disk_ns;
	left->sleep_ns -= gone->told.sleep_ns;
	left->voluntary_count -= gone->told.voluntary_count;
	left->involuntary_count -= gone->told.involuntary_count;
}

static int64_t take(int64_t *left, int64_t unit)
{
	int64_t taken = *left > 0 ? *left / unit : 0;

	*left -= taken * unit;
	return taken;
}

static bool row_tell(struct dead_row *row, bool totals, struct sample *account)
{
	struct live_totals *left = &row->left;
	int64_t any;

	*account = sample_absent;
	account->comm = name_of_comm(row->comm);
	account->uid = row->uid;
	account->forks = take(&row->forks, 1);
	account->execs = take(&row->execs, 1);
	account->exits = take(&row->exits, 1);
	account->dead_cpu_us = take(&row->cpu_ns, NS_PER_US);
	any = account->forks | account->execs | account->exits | account->dead_cpu_us;
	if (!totals)
		return any;
	account->cpu_us = take(&left->cpu_ns, NS_PER_US);
	account->runq_us = take(&left->runq_ns, NS_PER_US);
	account->dwait_us = take(&left->disk_ns, NS_PER_US);
	account->sleep_us = take(&left->sleep_ns, NS_PER_US);
	account->vcsw = take(&left->voluntary_count, 1);
	account->ivcsw = take(&left->involuntary_count, 1);
	return any | account->cpu_us | account->runq_us | account->dwait_us | account->sleep_us |
	       account->vcsw | account->ivcsw;
}

bool dead_table_tell(struct dead_table *table, size_t *at, bool totals, struct sample *account)
{
	struct dead_row *rows = table->rows.rows;

	while (*at < table->rows.count)
		if (row_tell(&rows[(*at)++], totals, account))
			return true;
	return false;
}

void dead_table_done(struct dead_table *table)
{
	keyed_done(&table->rows);
	*table = (struct dead_table){0};
}
