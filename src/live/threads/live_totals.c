/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_totals.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Totals are read a little after the scan time that they are reported for. */
#define ERROR_NS (10 * NS_PER_MS)

struct totals_row {
	int64_t tid, start_ns;
	struct live_totals last; /* totals in ns; only whole us have been reported */
	int64_t since_ns;	 /* scan time that last reaches to; 0: not known */
	int64_t late_ns; /* time by which last may reach further: it was read after the scan time */
	bool hidden;	 /* the newest totals do not add up with last */
	int64_t uid;
	char comm[THREAD_COMM_SIZE]; /* name in its last sample; empty: it had none */
	bool marked, used;
	size_t next_free;
};

static void row_report(const struct totals_table *table, const struct totals_row *row)
{
	struct totals_gone gone = {*row->comm ? row->comm : NULL, row->uid, row->last};

	gone.reported.until_ns = row->since_ns;
	if (table->gone)
		table->gone(table->to, &gone);
}

static void row_name(struct totals_row *row, const char *comm)
{
	size_t length;

	if (comm && !strcmp(comm, row->comm)) /* nearly always so */
		return;
	length = comm ? strnlen(comm, sizeof(row->comm) - 1) : 0;
	memcpy(row->comm, comm ? comm : "", length);
	row->comm[length] = '\0';
}

static void row_hide(struct totals_table *table, struct totals_row *row, bool hidden)
{
	table->hidden_count += (size_t)hidden - (size_t)row->hidden;
	row->hidden = hidden;
}

/* True if the totals are from before a sweep, and the thread has no row: the sweep may have taken
 * it for gone, and all of its time would be reported again. A living thread's time comes later. */
static bool swept_already(struct totals_table *table, const struct live_totals *now,
			  const struct sample *sample)
{
	return now->at_ns < table->swept_ns &&
	       !id_map_get(&table->rows_by_tid, (uint64_t)sample->thread.tid);
}

static struct totals_row *row_of(struct totals_table *table, const struct sample *sample)
{
	size_t slot = id_map_get(&table->rows_by_tid, (uint64_t)sample->thread.tid);
	bool added = !slot;
	struct totals_row *row;

	if (added && table->free_row) {
		slot = table->free_row;
		table->free_row = table->rows[slot - 1].next_free;
	} else if (added) {
		table->rows = memory_grow(table->rows, &table->capacity, table->count + 1,
					  sizeof(*table->rows));
		slot = ++table->count;
	}
	if (added)
		id_map_set(&table->rows_by_tid, (uint64_t)sample->thread.tid, (uint32_t)slot);
	row = &table->rows[slot - 1];
	if (!added && row->start_ns != sample->thread.start_ns) {
		row_report(table, row);
		row_hide(table, row, false);
	}
	if (added || row->start_ns != sample->thread.start_ns)
		*row = (struct totals_row){.tid = sample->thread.tid,
					   .start_ns = sample->thread.start_ns,
					   .used = true};
	row->marked = true; /* used since the last sweep */
	return row;
}

/* Returns what is new, in whole us, and adds it to *last_ns; the rest stays for the next time. */
static int64_t take_us(int64_t now_ns, int64_t *last_ns)
{
	int64_t us = (now_ns - *last_ns) / NS_PER_US;

	if (us <= 0)
		return 0;
	*last_ns += us * NS_PER_US;
	return us;
}

static int64_t take_count(int64_t now, int64_t *last)
{
	int64_t new = now - *last;

	*last = now;
	return new > 0 ? new : 0;
}

static int64_t time_between(const struct live_totals *last, const struct live_totals *now)
{
	return now->cpu_ns - last->cpu_ns + now->runq_ns - last->runq_ns + now->disk_ns -
	       last->disk_ns + now->sleep_ns - last->sleep_ns;
}

/* True if the totals have gained as much as time has gone by. */
static bool row_adds_up(const struct totals_table *table, const struct totals_row *row,
			const struct live_totals *now)
{
	int64_t gained_ns = time_between(&row->last, now);
	int64_t since_ns = row->since_ns ? row->since_ns : table->begun_ns;
	int64_t lacking_ns = now->until_ns - since_ns - gained_ns;

	if (!now->until_ns || !since_ns)
		return true;
	if (lacking_ns > ERROR_NS + row->late_ns)
		return !row->since_ns; /* a record may have begun at any time */
	/* records are read after the scan time, and include switches since */
	return lacking_ns >= -ERROR_NS ||
	       lacking_ns >= now->until_ns - clock_monotonic_ns() - ERROR_NS;
}

static void row_reach(const struct totals_table *table, struct totals_row *row, int64_t since_ns)
{
	int64_t late_ns = (table->read_ns ? table->read_ns : clock_monotonic_ns()) - since_ns;

	row->since_ns = since_ns;
	row->late_ns = since_ns && late_ns > 0 ? late_ns : 0;
}

/* Reports nothing, and begins anew when that has been so for long. */
static void row_withhold(struct totals_table *table, struct totals_row *row,
			 const struct live_totals *now, struct sample *sample)
{
	row_hide(table, row, true);
	if (now->until_ns - row->since_ns > TOTALS_HIDDEN_NS) {
		row->last = *now;
		row_reach(table, row, now->until_ns);
	}
	sample->sums = sample_absent()->sums;
}

/* Returns totals between the two, so far on the way as part says; no switch is counted before it is
 * sure. */
static struct live_totals totals_between(const struct live_totals *from,
					 const struct live_totals *to, double part)
{
	struct live_totals between = *from;

	between.cpu_ns += (int64_t)((double)(to->cpu_ns - from->cpu_ns) * part);
	between.runq_ns += (int64_t)((double)(to->runq_ns - from->runq_ns) * part);
	between.disk_ns += (int64_t)((double)(to->disk_ns - from->disk_ns) * part);
	between.sleep_ns += (int64_t)((double)(to->sleep_ns - from->sleep_ns) * part);
	return between;
}

/* Leaves out what came before reported_ns: on a full host the first scan comes long after the first
 * switch that was seen. How the totals have grown is not known: they are taken to have done so
 * evenly. */
static void row_skip_start(const struct totals_table *table, struct totals_row *row,
			   const struct live_totals *now)
{
	int64_t gained_ns = time_between(&row->last, now);
	int64_t before_ns = gained_ns - (now->until_ns - table->reported_ns);

	if (row->since_ns || !now->until_ns || !table->reported_ns || before_ns <= 0 ||
	    before_ns > gained_ns)
		return;
	row->last = totals_between(&row->last, now, (double)before_ns / (double)gained_ns);
}

/* Returns the totals as of end_ns. How they have grown since is not known: they are taken to have
 * done so evenly, too. */
static struct live_totals totals_to_end(const struct totals_table *table,
					const struct totals_row *row, const struct live_totals *now)
{
	int64_t gained_ns = time_between(&row->last, now), after_ns = now->until_ns - table->end_ns;
	struct live_totals ended = *now;

	if (!table->end_ns || !now->until_ns || after_ns <= 0 || gained_ns <= 0)
		return ended;
	if (after_ns > gained_ns)
		after_ns = gained_ns;
	ended = totals_between(&row->last, now, (double)(gained_ns - after_ns) / (double)gained_ns);
	ended.until_ns = now->until_ns - after_ns;
	return ended;
}

static void sleeps_clear(const struct totals_table *table, struct sample *sample)
{
	if (table->lacks_sleeps)
		sample->sums.dwait_us = sample->sums.sleep_us = ABSENT;
}

static void take_nothing(const struct totals_table *table, struct sample *sample)
{
	sample->sums.cpu_us = sample->sums.runq_us = sample->sums.dwait_us = sample->sums.sleep_us =
		0;
	sample->sums.vcsw = sample->sums.ivcsw = 0;
	sleeps_clear(table, sample);
}

void totals_take(struct totals_table *table, const struct live_totals *now, struct sample *sample)
{
	struct live_totals *last, ended;
	struct totals_row *row;

	if (now->at_ns < table->at_ns || swept_already(table, now, sample)) {
		take_nothing(table, sample);
		return;
	}
	table->at_ns = now->at_ns;
	row = row_of(table, sample);
	last = &row->last;
	/* this scan copied the record before an earlier scan, looked at late, read it */
	if (now->voluntary_count < last->voluntary_count && now->switched_ns < last->switched_ns) {
		take_nothing(table, sample);
		return;
	}
	/* a thread that executed a program under another tid has taken over a dead one's (tid and
	 * start time), and its record began anew */
	if (now->voluntary_count < last->voluntary_count) {
		row_report(table, row);
		*last = (struct live_totals){0};
		row->since_ns = 0;
	}
	row_name(row, sample->thread.comm);
	row->uid = sample->thread.uid;
	if (!row_adds_up(table, row, now)) {
		row_withhold(table, row, now, sample);
		return;
	}
	row_hide(table, row, false);
	row_skip_start(table, row, now);
	ended = totals_to_end(table, row, now);
	now = &ended;
	sample->sums.cpu_us = take_us(now->cpu_ns, &last->cpu_ns);
	sample->sums.runq_us = take_us(now->runq_ns, &last->runq_ns);
	sample->sums.dwait_us = take_us(now->disk_ns, &last->disk_ns);
	sample->sums.sleep_us = take_us(now->sleep_ns, &last->sleep_ns);
	sample->sums.vcsw = take_count(now->voluntary_count, &last->voluntary_count);
	sample->sums.ivcsw = take_count(now->involuntary_count, &last->involuntary_count);
	sleeps_clear(table, sample);
	last->switched_ns = now->switched_ns;
	row_reach(table, row, now->until_ns ? now->until_ns - time_between(last, now) : 0);
}

/* True if nothing but sleep has come since the last totals that would be reported. */
static bool slept_since(const struct live_totals *last, const struct live_totals *now)
{
	return now->voluntary_count == last->voluntary_count &&
	       now->involuntary_count == last->involuntary_count &&
	       now->cpu_ns - last->cpu_ns < NS_PER_US && now->runq_ns - last->runq_ns < NS_PER_US &&
	       now->disk_ns - last->disk_ns < NS_PER_US;
}

bool totals_only_slept(struct totals_table *table, const struct live_totals *now, int64_t tid,
		       int64_t start_ns)
{
	static const struct live_totals none = {0};
	size_t slot = id_map_get(&table->rows_by_tid, (uint64_t)tid);
	const struct totals_row *row = slot ? &table->rows[slot - 1] : NULL;

	return slept_since(row && row->start_ns == start_ns ? &row->last : &none, now);
}

bool totals_stand(struct totals_table *table, const struct live_totals *now, int64_t tid)
{
	static const struct live_totals none = {0};
	size_t slot = id_map_get(&table->rows_by_tid, (uint64_t)tid);
	struct totals_row *row = slot ? &table->rows[slot - 1] : NULL;

	if (!row)
		return slept_since(&none, now);
	/* the time of the last switch is this thread's alone */
	if (row->hidden || row->last.switched_ns != now->switched_ns ||
	    !slept_since(&row->last, now))
		return false;
	row->marked = true;
	return true;
}

void totals_carry(struct totals_table *table, const struct live_totals *before,
		  const struct sample *sample)
{
	struct live_totals *last = &row_of(table, sample)->last;

	last->cpu_ns -= before->cpu_ns;
	last->runq_ns -= before->runq_ns;
	last->disk_ns -= before->disk_ns;
	last->sleep_ns -= before->sleep_ns;
	last->voluntary_count -= before->voluntary_count;
	last->involuntary_count -= before->involuntary_count;
}

void totals_mark(struct totals_table *table, int64_t tid)
{
	size_t slot = id_map_get(&table->rows_by_tid, (uint64_t)tid);

	if (slot)
		table->rows[slot - 1].marked = true;
}

void totals_unmark(struct totals_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		table->rows[i].marked = false;
}

void totals_sweep(struct totals_table *table)
{
	table->swept_ns = clock_monotonic_ns();
	for (size_t i = 0; i < table->count; i++) {
		struct totals_row *row = &table->rows[i];

		if (!row->used)
			continue;
		if (!row->marked) {
			row_report(table, row);
			row_hide(table, row, false);
			id_map_set(&table->rows_by_tid, (uint64_t)row->tid, 0);
			row->used = false;
			row->next_free = table->free_row;
			table->free_row = i + 1;
		}
		row->marked = false;
	}
}

void totals_done(struct totals_table *table)
{
	id_map_clear(&table->rows_by_tid);
	free(table->rows);
	*table = (struct totals_table){0};
}
