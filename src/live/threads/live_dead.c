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
	struct process_totals before; /* totals as the kernel's table had them */
	/* values to be reported: */
	struct live_totals left;
	struct live_totals sampled; /* totals in samples since the previous account */
	int64_t forks, execs, exits, cpu_ns, threads;
	uint64_t forker, thread_maker; /* votes, as they were at the previous account */
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
	if (baseline) {
		row->forker = now->forker;
		row->thread_maker = now->thread_maker;
		return;
	}
	row->threads += (int64_t)(now->threads - before.threads);
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

/* Returns the part of a thread's reported totals that came since the previous account. */
static double reported_lately(const struct dead_table *table, const struct live_totals *reported)
{
	int64_t all_ns =
		reported->cpu_ns + reported->runq_ns + reported->disk_ns + reported->sleep_ns;
	int64_t lately_ns = reported->until_ns - table->ended_ns;

	if (lately_ns >= all_ns)
		return 1;
	return reported->until_ns && lately_ns > 0 ? (double)lately_ns / (double)all_ns : 0;
}

static void time_move(int64_t *left, int64_t *sampled, int64_t reported, double lately)
{
	*left -= reported;
	*sampled += (int64_t)((double)reported * lately);
}

void dead_table_take_off(struct dead_table *table, const struct totals_gone *gone)
{
	double lately = reported_lately(table, &gone->reported);
	struct dead_row *row;

	if (!gone->comm)
		return;
	if (table->full &&
	    !keyed_find(&table->rows, sizeof(struct dead_row), row_key(gone->comm, gone->uid)))
		row = row_of(table, OTHERS_COMM, ABSENT);
	else
		row = row_of(table, gone->comm, gone->uid);
	time_move(&row->left.cpu_ns, &row->sampled.cpu_ns, gone->reported.cpu_ns, lately);
	time_move(&row->left.runq_ns, &row->sampled.runq_ns, gone->reported.runq_ns, lately);
	time_move(&row->left.disk_ns, &row->sampled.disk_ns, gone->reported.disk_ns, lately);
	time_move(&row->left.sleep_ns, &row->sampled.sleep_ns, gone->reported.sleep_ns, lately);
	row->left.voluntary_count -= gone->reported.voluntary_count;
	row->left.involuntary_count -= gone->reported.involuntary_count;
}

void dead_table_end(struct dead_table *table, int64_t end_ns, int64_t read_ns)
{
	int64_t before_ns = end_ns - table->ended_ns, after_ns = read_ns - end_ns;

	table->later = 0;
	/* less than a hundredth of the dead, as where no scan waits, is not left for the next
	 * account */
	if (table->ended_ns && after_ns * 100 > before_ns)
		table->later =
			before_ns > 0 ? (double)after_ns / (double)(before_ns + after_ns) : 1;
	table->ended_ns = end_ns;
}

static int64_t take(int64_t *left, int64_t unit)
{
	int64_t taken = *left > 0 ? *left / unit : 0;

	*left -= taken * unit;
	return taken;
}

/* Takes what is to be reported now: all but the part `later` of the sum of what is left and what
 * samples have reported since the previous account. All of the latter came before this account's
 * end. */
static int64_t take_part(int64_t *left, int64_t *sampled, double later)
{
	int64_t stays = (int64_t)((double)(*left + *sampled) * later);
	int64_t taken, now = *left - stays;

	*sampled = 0;
	taken = take(&now, NS_PER_US);
	*left = now + stays;
	return taken;
}

/* The process that made at least half of what was counted since the previous account, or ABSENT. */
static int64_t maker_of(uint64_t *voted, uint64_t vote, int64_t count)
{
	bool same = (uint32_t)*voted == (uint32_t)vote;
	int64_t more = (int64_t)(vote >> 32) - (same ? (int64_t)(*voted >> 32) : 0);

	*voted = vote;
	return count && more * 2 >= count ? (int64_t)(uint32_t)vote : ABSENT;
}

static bool row_report(struct dead_row *row, bool totals, double later, struct sample *account)
{
	struct live_totals *left = &row->left, *sampled = &row->sampled;
	int64_t any;

	*account = *sample_absent();
	account->thread.comm = name_of_comm(row->comm);
	account->thread.uid = row->uid;
	account->sums.forks = take(&row->forks, 1);
	account->sums.execs = take(&row->execs, 1);
	account->sums.exits = take(&row->exits, 1);
	account->sums.dead_cpu_us = take(&row->cpu_ns, NS_PER_US);
	account->sums.new_threads = take(&row->threads, 1);
	account->makers.fork_pid = maker_of(&row->forker, row->before.forker, account->sums.forks);
	account->makers.thread_pid =
		maker_of(&row->thread_maker, row->before.thread_maker, account->sums.new_threads);
	any = account->sums.forks | account->sums.execs | account->sums.exits |
	      account->sums.dead_cpu_us | account->sums.new_threads;
	if (!totals)
		return any;
	account->sums.cpu_us = take_part(&left->cpu_ns, &sampled->cpu_ns, later);
	account->sums.runq_us = take_part(&left->runq_ns, &sampled->runq_ns, later);
	account->sums.dwait_us = take_part(&left->disk_ns, &sampled->disk_ns, later);
	account->sums.sleep_us = take_part(&left->sleep_ns, &sampled->sleep_ns, later);
	account->sums.vcsw = take(&left->voluntary_count, 1);
	account->sums.ivcsw = take(&left->involuntary_count, 1);
	return any | account->sums.cpu_us | account->sums.runq_us | account->sums.dwait_us |
	       account->sums.sleep_us | account->sums.vcsw | account->sums.ivcsw;
}

bool dead_table_report(struct dead_table *table, size_t *at, bool totals, struct sample *account)
{
	struct dead_row *rows = table->rows.rows;

	while (*at < table->rows.count)
		if (row_report(&rows[(*at)++], totals, table->later, account))
			return true;
	return false;
}

void dead_table_done(struct dead_table *table)
{
	keyed_done(&table->rows);
	*table = (struct dead_table){0};
}
