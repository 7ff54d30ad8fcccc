/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/grid.h"
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/names.h"
#include "report/group_split.h"
#include "report/measure.h"
#include "report/tally.h"
#include "report/value.h"
#include "sample/edge_kind.h"
#include "sample/proc_values.h"
#include "sample/waits_on.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Measures of a row that are made of its parts: the time in each state, the call and the wait that
 * have most of the time, the processes of a program.
 *
 * A table whose list has such measures groups samples by more keys than its rows have: by the keys
 * of its parts, which come after those of its rows. Exact times are shared out among the parts.
 * group_parts_fill() puts the parts of each row together.
 */

/* What most of a row's time is told by: a text that its parts have. */
enum { VOTE_CALL, VOTE_WAIT, VOTE_CHAIN, VOTE_FILE, VOTE_FUNCTION, VOTES };

/* What a row's parts say beside their sums. */
struct row_parts {
	int64_t state_us[STATE_COUNT]; /* weights as in tally_avg_thr() */
	int64_t longest_us;	       /* ABSENT: no part waits */
	int64_t pid, pids;	       /* one of the processes, and their number */
	double variance;	       /* of the weight, in us * us */
	const char *comm;	       /* NULL: not known, or several */
	bool comms;		       /* there are several */
	const char *program;
	const char *chosen[VOTES];
};

/* A zeroed struct is empty. */
struct group_parts {
	struct group_table rows; /* the groups, by the keys of rows alone */
	struct row_parts *of;	 /* for each of its groups */
	bool errors;		 /* standard errors are computed */
};

#define WAIT_LEAST 10 /* part of a row's time from which on what it waits for is told */

/* A text, and the time of the row's parts that have it. */
struct vote {
	size_t row;
	const char *text; /* NULL: not known */
	const char *sum;  /* the text of several */
	int64_t weight;
};

struct filling {
	struct group_parts *parts;
	const struct group_table *table;
	const struct tally *tally;
	struct keyed votes[VOTES]; /* struct vote */
	struct index pids;
};

static void vote_add(struct keyed *votes, size_t row, const char *text, const char *sum,
		     int64_t weight)
{
	struct vote *vote;
	bool added;

	sum = sum ? sum : text;
	vote = keyed_put(votes, sizeof(*vote), hash_u64((uint64_t)(uintptr_t)sum + row), &added);
	if (added)
		*vote = (struct vote){.row = row, .text = text, .sum = sum};
	if (vote->text != text)
		vote->text = sum;
	vote->weight += weight;
}

/* The call that a part is in, in words where it is in none. */
static const char *call_of(const struct filling *filling, const struct sample *part)
{
	if (part->thread.kthread == 1)
		return part->now.workqueue ? part->now.workqueue : name_of_string("kernel thread");
	if (part->call.name || part->thread.kthread == ABSENT || filling->table->calls_unknown)
		return part->call.name;
	if (part->now.state == STATE_ON || part->now.state == STATE_RQ)
		return name_of_string("user code");
	return part->now.state == STATE_DISK ? name_of_string("page fault") : NULL;
}

static const char *brief_wait(const char *waits_on)
{
	static struct text text;

	if (!waits_on)
		return NULL;
	text_clear(&text);
	waits_on_shorten(&text, waits_on);
	return name_transient_string(text_string(&text));
}

const char *sample_waits_for(const struct sample *sample, bool folded)
{
	static struct text text;

	if (sample->now.state == STATE_ON)
		return NULL;
	if (sample->now.state == STATE_RQ)
		return edge_kind_of(sample->blocker.kind) == EDGE_QUOTA
			       ? name_of_string("its CPU quota")
			       : name_of_string("a CPU");
	if (sample->wait.on || !sample->io.dev)
		return brief_wait(folded && sample->wait.onsum ? sample->wait.onsum
							       : sample->wait.on);
	text_clear(&text);
	text_add_format(&text, "disk %s", sample->io.dev);
	return name_transient_string(text_string(&text));
}

static void name_add(struct row_parts *of, const char *comm)
{
	of->comms |= of->comm && comm && of->comm != comm;
	of->comm = comm ? comm : of->comm;
}

static void pid_add(struct filling *filling, size_t row, int64_t pid)
{
	struct row_parts *of = &filling->parts->of[row];
	bool added;

	if (pid == ABSENT)
		return;
	index_put(&filling->pids, hash_u64(hash_u64((uint64_t)pid) + row), &added);
	of->pids += added;
	of->pid = pid;
}

/* Adds what samples alone show: time that no sample saw has a name and a state. */
static void sampled_add(struct filling *filling, size_t row, const struct sample *part,
			int64_t weight)
{
	struct row_parts *of = &filling->parts->of[row];

	vote_add(&filling->votes[VOTE_CALL], row, call_of(filling, part), NULL, weight);
	if (part->chain.text && strstr(part->chain.text, "> "))
		vote_add(&filling->votes[VOTE_CHAIN], row, part->chain.text, NULL, weight);
	if (part->file.name && *part->file.name == '/')
		vote_add(&filling->votes[VOTE_FILE], row, part->file.name, part->file.namesum,
			 weight);
	vote_add(&filling->votes[VOTE_FUNCTION], row, part->stack.ufunc, NULL, weight);
	pid_add(filling, row, part->thread.pid);
	if (part->now.state == STATE_ON)
		return;
	if (part->now.state_us > of->longest_us) /* absent is the least of all */
		of->longest_us = part->now.state_us;
	if (part->now.state == STATE_DISK || part->now.state == STATE_SLEEP)
		vote_add(&filling->votes[VOTE_WAIT], row, sample_waits_for(part, false),
			 part->wait.on ? brief_wait(part->wait.onsum) : NULL, weight);
}

static void part_add(struct filling *filling, size_t index, size_t row)
{
	const struct group_table *table = filling->table;
	const union value *group = group_at(table, index);
	struct row_parts *of = &filling->parts->of[row];
	struct sample part = *sample_absent();
	int64_t error_us = group_error_us(table, index);
	int64_t weight = filling->tally->shared_us ? group_weight_us(table, group)
						   : group_samples(table, group);

	for (size_t i = 0; i < table->key_count; i++)
		if (!column_is_proc_value(table->keys[i]))
			column_set(table->keys[i], &part, group[i]);
	part.now.state_us = group[table->state_us_word].number;
	filling->parts->errors |= error_us != ABSENT;
	if (error_us != ABSENT)
		of->variance += (double)error_us * (double)error_us;
	if (part.now.state >= 0 && part.now.state < STATE_COUNT)
		of->state_us[part.now.state] = sum(of->state_us[part.now.state], weight);
	if (part.now.state == STATE_RQ)
		vote_add(&filling->votes[VOTE_WAIT], row, sample_waits_for(&part, false), NULL,
			 weight);
	name_add(of, part.thread.comm);
	if (group_samples(table, group))
		sampled_add(filling, row, &part, weight);
}

/* Sets the text with most time of each row, if that is enough of the row's time; equal ones by
 * their order. That it is not known what some threads wait for, or in which function they are, does
 * not count: for many it is found only after a while. */
static void votes_count(struct filling *filling, int choice)
{
	const struct keyed *votes = &filling->votes[choice];
	const struct vote *vote = votes->rows;
	int64_t *most = memory_get((filling->parts->rows.count + 1) * sizeof(*most));

	for (size_t i = 0; i < votes->count; i++, vote++) {
		struct row_parts *of = &filling->parts->of[vote->row];
		int64_t all = 0;

		for (int state = 0; state < STATE_COUNT; state++)
			all = sum(all, of->state_us[state]);
		if ((choice != VOTE_CALL && !vote->text) || vote->weight <= most[vote->row] ||
		    vote->weight < all / WAIT_LEAST)
			continue;
		most[vote->row] = vote->weight;
		of->chosen[choice] = vote->text;
	}
	free(most);
}

static const char *row_text(const struct group_table *rows, size_t row, const char *name)
{
	const struct column *column = sample_column_find(name);
	size_t at = 0;

	while (rows->keys[at] != column)
		at++;
	return group_at(rows, row)[at].text;
}

/* Names the program of each row: "curl (13)", "python3 5120 of alice in web". Its user is named
 * where it has one in another row, too. */
static void programs_name(struct group_parts *parts)
{
	struct index users = {0};
	struct text text = {0};

	for (int naming = 0; naming < 2; naming++)
		for (size_t row = 0; row < parts->rows.count; row++) {
			struct row_parts *of = &parts->of[row];
			const char *sum = row_text(&parts->rows, row, "commsum");
			const char *user = row_text(&parts->rows, row, "user");
			const char *container = row_text(&parts->rows, row, "container");
			uint64_t *rows = index_put(&users,
						   hash_u64((uint64_t)(uintptr_t)sum) +
							   (uint64_t)(uintptr_t)container,
						   NULL);

			*rows += !naming && user;
			if (!naming || !sum)
				continue;
			text_clear(&text);
			text_add_string(&text, of->comm && !of->comms ? of->comm : sum);
			if (of->pids == 1)
				text_add_format(&text, " %lld", (long long)of->pid);
			else if (of->pids)
				text_add_format(&text, " (%lld)", (long long)of->pids);
			if (*rows > 1 && user)
				text_add_format(&text, " of %s", user);
			if (container)
				text_add_format(&text, " in %s", container);
			of->program = name_transient_string(text_string(&text));
		}
	index_clear(&users);
	text_done(&text);
}

/* Begins the table of rows: as the table of their parts, but with their own keys. */
static void rows_begin(struct group_parts *parts, const struct group_table *table)
{
	struct group_table *rows = &parts->rows;

	group_table_init_rows(rows, table);
	parts->of = memory_get((table->count + 1) * sizeof(*parts->of));
	for (size_t i = 0; i < table->count; i++)
		parts->of[i].longest_us = ABSENT;
}

/* Puts the parts of each row together; call after their times are shared out. */
static void group_parts_fill(struct group_parts *parts, const struct group_table *table,
			     const struct tally *tally)
{
	struct filling filling = {.parts = parts, .table = table, .tally = tally};

	rows_begin(parts, table);
	for (size_t i = 0; i < table->count; i++)
		part_add(&filling, i, group_table_merge(&parts->rows, table, i));
	for (int choice = 0; choice < VOTES; choice++)
		votes_count(&filling, choice);
	if (table->names_programs)
		programs_name(parts);
	for (int choice = 0; choice < VOTES; choice++)
		keyed_done(&filling.votes[choice]);
	index_clear(&filling.pids);
}

/* Sets the measures of a row that are made of its parts. */
static void group_parts_measure(const struct group_parts *parts, size_t row,
				const struct tally *tally, struct measures *measures)
{
	static const int states[MEASURE_STATES] = {STATE_ON, STATE_RQ, STATE_DISK, STATE_SLEEP};
	const struct row_parts *of = &parts->of[row];

	for (int i = 0; i < MEASURE_STATES; i++)
		measures->state_thr[i] = tally_avg_thr(tally, of->state_us[states[i]]);
	measures->longest_ns =
		of->longest_us == ABSENT ? ABSENT : ratio(of->longest_us, NS_PER_US, 1);
	measures->program = of->program;
	measures->mostly_in = of->chosen[VOTE_CALL];
	measures->waits_for = of->chosen[VOTE_WAIT];
	measures->main_chain = of->chosen[VOTE_CHAIN];
	measures->main_file = of->chosen[VOTE_FILE];
	measures->function = of->chosen[VOTE_FUNCTION];
	if (parts->errors)
		measures->error = ratio((int64_t)sqrt(of->variance), 1000, US_PER_SECOND);
}

static void group_parts_done(struct group_parts *parts)
{
	group_table_done(&parts->rows);
	free(parts->of);
	*parts = (struct group_parts){0};
}

void grid_size(struct grid *grid, const struct column_list *list, size_t row_count)
{
	size_t values = row_count * list->count;

	grid->values = memory_grow(grid->values, &grid->capacity, values, sizeof(*grid->values));
	grid->list = list;
	grid->row_count = row_count;
}

void grid_fill_rows(struct grid *grid, const struct column_list *list, const struct scan *scan)
{
	struct sample_wide scratch;
	union value *value;

	grid_size(grid, list, scan->count);
	value = grid->values;
	for (size_t row = 0; row < scan->count; row++) {
		const void *from = &scan->samples[row];

		if (list->wide)
			from = sample_widen(&scratch, from);
		for (size_t i = 0; i < list->count; i++)
			*value++ = column_read(list->items[i], from);
	}
}

static int64_t busy_us(const union value *sums)
{
	return sum(sum(0, sums[SUM_CPU_US].number),
		   sum(sums[SUM_DWAIT_US].number, sums[SUM_DEAD_CPU_US].number));
}

struct ordering {
	const struct group_table *groups;
	bool by_time; /* false: by samples */
};

static int group_compare(const void *a, const void *b, void *from)
{
	const struct ordering *ordering = from;
	const struct group_table *groups = ordering->groups;
	const union value *x = group_at(groups, *(const size_t *)a);
	const union value *y = group_at(groups, *(const size_t *)b);
	int64_t samples = group_samples(groups, y) - group_samples(groups, x), more;

	more = (group_weight_us(groups, y) > group_weight_us(groups, x)) -
	       (group_weight_us(groups, y) < group_weight_us(groups, x));
	if (!more || (!ordering->by_time && samples))
		more = samples;
	if (!more && groups->exact)
		more = (busy_us(group_sums(groups, y)) > busy_us(group_sums(groups, x))) -
		       (busy_us(group_sums(groups, y)) < busy_us(group_sums(groups, x)));
	for (size_t i = 0; !more && i < groups->key_count; i++)
		more = value_compare(groups->keys[i], x[i], y[i]);
	return (more > 0) - (more < 0);
}

/* True if the group has nothing to report: no samples, and its threads only slept. */
static bool group_idle(const struct group_table *groups, const union value *group)
{
	if (group_samples(groups, group) || (groups->split && group_weight_us(groups, group)))
		return false;
	return groups->exact ? measure_sums_idle(group_sums(groups, group)) : groups->split != NULL;
}

void grid_fill_groups(struct grid *grid, const struct group_table *table, const struct tally *tally)
{
	const struct column_list *list = table->list;
	struct group_parts parts = {0};
	const struct group_table *groups = table;
	struct ordering ordering = {.by_time = tally->shared_us};
	size_t count = 0, *order;
	union value *value;

	if (table->has_parts) {
		group_parts_fill(&parts, table, tally);
		groups = &parts.rows;
	}
	ordering.groups = groups;
	order = memory_get(groups->count * sizeof(*order));
	for (size_t row = 0; row < groups->count; row++)
		if (!group_idle(groups, group_at(groups, row)))
			order[count++] = row;
	qsort_r(order, count, sizeof(*order), group_compare, &ordering);
	grid_size(grid, list, count);
	value = grid->values;
	for (size_t row = 0; row < count; row++) {
		const union value *group = group_at(groups, order[row]);
		int64_t error_us = groups == table ? group_error_us(groups, order[row]) : ABSENT;
		struct measures measures =
			measures_of(group_samples(groups, group), group_weight_us(groups, group),
				    group_sums(groups, group), tally);

		if (error_us != ABSENT)
			measures.error = ratio(error_us, 1000, US_PER_SECOND);
		if (groups != table)
			group_parts_measure(&parts, order[row], tally, &measures);
		for (size_t i = 0; i < list->count; i++)
			*value++ = list->items[i]->role == ROLE_MEASURE
					   ? column_read(list->items[i], &measures)
					   : group[groups->word_of[i]];
	}
	free(order);
	group_parts_done(&parts);
}

struct sorting {
	const struct grid *grid;
	size_t at; /* index of the column */
};

static int row_compare(const void *a, const void *b, void *from)
{
	const struct sorting *sorting = from;
	const struct column *column = sorting->grid->list->items[sorting->at];
	size_t row = *(const size_t *)a, other = *(const size_t *)b;
	union value x = grid_row(sorting->grid, row)[sorting->at];
	union value y = grid_row(sorting->grid, other)[sorting->at];
	bool upwards = column->kind == KIND_TEXT || column->kind == KIND_STATE;
	int more = value_is_absent(column, x) - value_is_absent(column, y);

	if (!more)
		more = upwards ? value_compare(column, x, y) : value_compare(column, y, x);
	return more ? more : (row > other) - (row < other);
}

void grid_sort(struct grid *grid, const struct column *column)
{
	size_t width = grid->list->count,
	       *order = memory_get((grid->row_count + 1) * sizeof(*order));
	union value *sorted = memory_get((grid->row_count * width + 1) * sizeof(*sorted));
	struct sorting sorting = {.grid = grid};

	while (grid->list->items[sorting.at] != column)
		sorting.at++;
	for (size_t row = 0; row < grid->row_count; row++)
		order[row] = row;
	qsort_r(order, grid->row_count, sizeof(*order), row_compare, &sorting);
	for (size_t row = 0; row < grid->row_count; row++)
		memcpy(sorted + row * width, grid_row(grid, order[row]), width * sizeof(*sorted));
	memcpy(grid->values, sorted, grid->row_count * width * sizeof(*sorted));
	free(sorted);
	free(order);
}

const union value *grid_row(const struct grid *grid, size_t row)
{
	return grid->values + row * grid->list->count;
}

void grid_done(struct grid *grid)
{
	free(grid->values);
	*grid = (struct grid){0};
}
