/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/time_facts.h"
#include "base/clock.h"
#include "report/grid.h"
#include "report/value.h"
#include "sample/proc_values.h"

#include <stdlib.h>

#define CELLS_MAX (1u << 19) /* some 30 MB */
#define SPAN_MAX_US (366ll * 86400 * US_PER_SECOND)
#define STEP_LONGER 10 /* beyond the longest step of the table */
#define LONG_SCANS 4   /* fewer say nothing about the others */

/* Lengths of steps, each a multiple of the one before. */
static const int64_t steps_us[] = {
	100000,	    500000,	 1000000,     5000000,	   10000000,
	30000000,   60000000,	 300000000,   600000000,   1800000000,
	3600000000, 10800000000, 21600000000, 43200000000, 86400000000,
};

uint64_t time_facts_needs(void)
{
	struct column_list list = {0};
	struct error unsaid = {0};

	column_list_add(&list, "comm,state,syscall,stack,waits_on,waits_onsum,io_dev,blocker_kind",
			true, &unsaid);
	error_done(&unsaid);
	return column_list_needs(&list);
}

static int64_t longer(int64_t step_us)
{
	size_t count = sizeof(steps_us) / sizeof(steps_us[0]);

	for (size_t i = 0; i < count; i++)
		if (steps_us[i] > step_us)
			return steps_us[i];
	return step_us * STEP_LONGER;
}

static int64_t divide(int64_t time_us, int64_t by)
{
	return time_us / by - (time_us % by < 0);
}

static void cell_add(struct keyed *cells, size_t fact, int64_t step, int64_t us)
{
	struct time_cell *cell =
		keyed_put(cells, sizeof(*cell), hash_u64(hash_u64((uint64_t)step) + fact), NULL);

	cell->fact = fact;
	cell->step = step;
	cell->us = sum(cell->us, us);
}

static void step_add(struct keyed *steps, int64_t number, int64_t us)
{
	struct time_step_scanned *step = keyed_put(steps, sizeof(*step), (uint64_t)number, NULL);

	step->step = number;
	step->us = sum(step->us, us);
}

/* Makes steps longer, and adds up what becomes one. */
static void lengthen(struct time_facts *facts, int64_t step_us)
{
	struct keyed cells = {0}, steps = {0};
	const struct time_cell *cell = facts->cells.rows;
	const struct time_step_scanned *step = facts->steps.rows;
	int64_t by = step_us / facts->step_us;

	for (size_t i = 0; i < facts->cells.count; i++)
		cell_add(&cells, cell[i].fact, divide(cell[i].step, by), cell[i].us);
	for (size_t i = 0; i < facts->steps.count; i++)
		step_add(&steps, divide(step[i].step, by), step[i].us);
	keyed_done(&facts->cells);
	keyed_done(&facts->steps);
	facts->cells = cells;
	facts->steps = steps;
	facts->first = divide(facts->first, by);
	facts->last = divide(facts->last, by);
	facts->step_us = step_us;
}

/* True if scans that far apart are nearer to a longer step. */
static bool is_long(int64_t scan_us, int64_t step_us)
{
	return step_us + step_us / 2 < scan_us;
}

/* Chooses the first length of steps: the one nearest to the time between scans, or the least. */
static void step_begin(struct time_facts *facts, int64_t time_us)
{
	int64_t step_us = steps_us[0];

	while (is_long(facts->scan_us, step_us) && step_us < SPAN_MAX_US)
		step_us = longer(step_us);
	facts->step_us = step_us;
	facts->first = facts->last = divide(time_us, step_us);
}

/* Makes room for steps of that time. */
static void room_make(struct time_facts *facts, int64_t from_us, int64_t until_us)
{
	int64_t step_us = facts->step_us, first, last, by;

	for (;; step_us = longer(step_us)) {
		by = step_us / facts->step_us;
		first = divide(from_us, step_us);
		last = divide(until_us, step_us);
		first = divide(facts->first, by) < first ? divide(facts->first, by) : first;
		last = divide(facts->last, by) > last ? divide(facts->last, by) : last;
		if (last - first < STEPS_MAX)
			break;
	}
	if (step_us != facts->step_us)
		lengthen(facts, step_us);
	facts->first = first;
	facts->last = last;
}

/* A time that is spread over steps. */
struct spread {
	int64_t from_us, until_us;
	int64_t us; /* what is spread evenly over it */
};

/* Takes the next step of the spread, and what falls into it. False: it was the last. */
static bool spread_next(const struct time_facts *facts, struct spread *spread, int64_t *step,
			int64_t *us)
{
	int64_t end_us, length_us = spread->until_us - spread->from_us;

	if (length_us <= 0)
		return false;
	*step = divide(spread->from_us, facts->step_us);
	end_us = (*step + 1) * facts->step_us;
	if (end_us > spread->until_us)
		end_us = spread->until_us;
	*us = ratio(spread->us, end_us - spread->from_us, length_us);
	spread->us -= *us;
	spread->from_us = end_us;
	return true;
}

/* Begins to spread a time that ends, or begins (again), then. */
static struct spread spread_begin(struct time_facts *facts, int64_t time_us, int64_t length_us,
				  bool again)
{
	struct spread spread;

	length_us = length_us < 1 ? 1 : length_us > SPAN_MAX_US ? SPAN_MAX_US : length_us;
	spread.from_us = again ? time_us : time_us - length_us;
	spread.until_us = again ? time_us + length_us : time_us;
	if (!facts->step_us)
		step_begin(facts, spread.from_us);
	room_make(facts, spread.from_us, spread.until_us - 1);
	return spread;
}

void time_facts_begin(struct time_facts *facts, const struct scan *batch)
{
	facts->scan_us = batch->weight_us;
}

static uint64_t hash_more(uint64_t hash, union value value)
{
	return hash_u64(hash ^ (uint64_t)value.number) + 1;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_u64(hash ^ (uint64_t)(uintptr_t)text) + 1;
}

uint64_t time_facts_row(const struct column_list *columns, const union value *values)
{
	uint64_t hash = 1;

	for (size_t i = 0; i < columns->count; i++)
		if (columns->items[i]->role == ROLE_KEY)
			hash = hash_more(hash, values[i]);
	return hash;
}

static uint64_t row_of_sample(const struct column_list *columns, const struct sample *sample)
{
	struct sample_wide scratch;
	const void *from = columns->wide ? sample_widen(&scratch, sample) : sample;
	uint64_t hash = 1;

	for (size_t i = 0; i < columns->count; i++)
		if (columns->items[i]->role == ROLE_KEY)
			hash = hash_more(hash, column_read(columns->items[i], from));
	return hash;
}

/* Finds or makes the fact; returns its index. */
static size_t fact_put(struct time_facts *facts, struct time_fact new)
{
	uint64_t hash = hash_text(new.row, new.wait);
	struct time_fact *fact;
	bool added;

	hash = hash_text(hash_text(hash_text(hash, new.comm), new.syscall), new.stack);
	hash = hash_u64(hash ^ (uint64_t) new.state);
	fact = keyed_find(&facts->facts, sizeof(*fact), hash);
	if (!fact && facts->facts.count >= TIME_FACTS_MAX && new.row)
		return fact_put(facts, (struct time_fact){.state = new.state,
							  .wait = new.wait,
							  .weight_us = new.weight_us});
	if (!fact && facts->facts.count >= TIME_FACTS_MAX + TIME_WAITS_MAX && new.wait)
		return fact_put(facts,
				(struct time_fact){.state = new.state, .weight_us = new.weight_us});
	fact = keyed_put(&facts->facts, sizeof(*fact), hash, &added);
	if (added)
		*fact = new;
	else
		fact->weight_us = sum(fact->weight_us, new.weight_us);
	return (size_t)(fact - (struct time_fact *)facts->facts.rows);
}

void time_facts_add(struct time_facts *facts, const struct sample *sample, bool again)
{
	int64_t weight_us = sample->scan.weight_us, step, us;
	struct spread spread;
	size_t fact;

	if (weight_us <= 0 || sample->scan.time_us == ABSENT)
		return;
	fact = fact_put(facts, (struct time_fact){
				       .row = row_of_sample(facts->rows, sample),
				       .state = sample->now.state,
				       .wait = sample_waits_for(sample, true),
				       .comm = sample->thread.comm,
				       .syscall = sample->call.name,
				       .stack = sample->stack.both,
				       .weight_us = weight_us,
			       });
	/* a sample of a short wait may stand for several threads at once (struct source, shares) */
	spread = spread_begin(facts, sample->scan.time_us,
			      again || weight_us < facts->scan_us ? weight_us : facts->scan_us,
			      again);
	spread.us = weight_us;
	while (spread_next(facts, &spread, &step, &us))
		cell_add(&facts->cells, fact, step, us);
	if (facts->cells.count > CELLS_MAX && facts->last > facts->first)
		lengthen(facts, longer(facts->step_us));
}

void time_facts_end(struct time_facts *facts, const struct scan *scan)
{
	struct spread spread;
	int64_t step, us;

	facts->scan_us = scan->weight_us;
	spread = spread_begin(facts, scan->time_us, sum(scan->weight_us, scan->silent_us), false);
	spread.us = spread.until_us - spread.from_us;
	while (spread_next(facts, &spread, &step, &us))
		step_add(&facts->steps, step, us);
	facts->scans++;
	facts->long_scans += is_long(scan->weight_us, facts->step_us);
	/* the first scan of a recording may be a short one */
	if (facts->long_scans <= LONG_SCANS || facts->long_scans * 2 <= facts->scans ||
	    facts->step_us > SPAN_MAX_US)
		return;
	lengthen(facts, longer(facts->step_us));
	facts->scans = facts->long_scans = 0;
}

void time_facts_clear(struct time_facts *facts)
{
	keyed_done(&facts->facts);
	keyed_done(&facts->cells);
	keyed_done(&facts->steps);
	*facts = (struct time_facts){.rows = facts->rows};
}
