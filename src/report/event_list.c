/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/event_list.h"
#include "base/clock.h"
#include "base/memory.h"
#include "report/value.h"
#include "sample/proc_values.h"

#include <stdlib.h>

#define AT(member) offsetof(struct event, member)

const struct column event_columns[] = {
	{"timestamp", "ENDED", "", KIND_TIME, ROLE_MEASURE, 0, 27, AT(who.scan.time_us)},
	{"trace", "TRACE", "", KIND_TEXT, ROLE_MEASURE, 0, 8, AT(trace)},
	{"duration_ns", "TOOK", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(duration_ns)},
	{"bytes", "BYTES", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.io.bytes)},
	{"sent", "SENT", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.event.sent)},
	{"received", "RECEIVED", "", KIND_NUMBER, ROLE_MEASURE, 0, 8, AT(who.event.received)},
	{"connect_ns", "CONNECT", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(who.event.connect_ns)},
	{"retransmits", "RETRANSMITS", "", KIND_NUMBER, ROLE_MEASURE, 0, 11,
	 AT(who.event.retransmits)},
	{"cpu_us", "CPU_US", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.sums.cpu_us)},
	{"runq_us", "RUNQ_US", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.sums.runq_us)},
	{"dwait_us", "DWAIT_US", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.sums.dwait_us)},
	{"sleep_us", "SLEEP_US", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.sums.sleep_us)},
};

const size_t event_column_count = sizeof(event_columns) / sizeof(event_columns[0]);

int event_list_init(struct event_list *events, const char *keys, const char *more, struct error *e)
{
	struct column_list chosen = {0};
	int err = column_list_add(&chosen, keys, true, e);

	if (!err && more)
		err = column_list_add(&chosen, more, true, e);
	if (err)
		return err;
	*events = (struct event_list){0};
	for (size_t i = 0; i < event_column_count; i++)
		events->list.items[events->list.count++] = &event_columns[i];
	for (size_t i = 0; i < chosen.count && events->list.count < COLUMN_LIST_MAX; i++)
		if (chosen.items[i]->role == ROLE_KEY && chosen.items[i]->kind != KIND_TIME)
			events->list.items[events->list.count++] = chosen.items[i];
	return 0;
}

void event_list_add(struct event_list *events, const struct trace_kind *kind,
		    const struct sample *who, int64_t duration_ns)
{
	if (events->count == EVENTS_KEPT_MAX) {
		events->refused++;
		return;
	}
	events->items = memory_grow(events->items, &events->capacity, events->count + 1,
				    sizeof(*events->items));
	events->items[events->count++] = (struct event){kind->name, duration_ns, *who};
}

static union value event_value(const struct event *event, const struct column *column)
{
	return column->role == ROLE_MEASURE ? column_read(column, event)
					    : sample_value(column, &event->who);
}

static bool column_lacking(const struct event_list *events, const struct column *column)
{
	for (size_t i = 0; i < events->count; i++)
		if (!value_is_absent(column, event_value(&events->items[i], column)))
			return false;
	return true;
}

static int event_compare(const void *a, const void *b)
{
	const struct event *x = *(const struct event *const *)a;
	const struct event *y = *(const struct event *const *)b;

	if (x->duration_ns != y->duration_ns)
		return x->duration_ns < y->duration_ns ? 1 : -1;
	return (x->who.scan.time_us > y->who.scan.time_us) -
	       (x->who.scan.time_us < y->who.scan.time_us);
}

static void rows_fill(const struct column_list *list, const struct event *const *order,
		      size_t count, struct grid *grid)
{
	union value *value;

	grid_size(grid, list, count);
	value = grid->values;
	for (size_t row = 0; row < count; row++)
		for (size_t i = 0; i < list->count; i++)
			*value++ = event_value(order[row], list->items[i]);
}

static const struct event **order_make(const struct event_list *events)
{
	const struct event **order = memory_get((events->count + 1) * sizeof(*order));

	for (size_t i = 0; i < events->count; i++)
		order[i] = &events->items[i];
	return order;
}

void event_grid_fill(struct event_list *events, struct grid *grid)
{
	const struct event **order = order_make(events);

	events->shown = (struct column_list){0};
	for (size_t i = 0; i < events->list.count; i++)
		if (!column_lacking(events, events->list.items[i]))
			events->shown.items[events->shown.count++] = events->list.items[i];
	qsort(order, events->count, sizeof(*order), event_compare);
	rows_fill(&events->shown, order, events->count, grid);
	free(order);
}

void event_rows_fill(const struct event_list *events, struct grid *grid)
{
	const struct event **order = order_make(events);

	rows_fill(&events->list, order, events->count, grid);
	free(order);
}

void event_list_clear(struct event_list *events)
{
	events->count = 0;
	events->refused = 0;
}

void event_list_done(struct event_list *events)
{
	free(events->items);
	*events = (struct event_list){0};
}

struct sleep_stack {
	int64_t time_us; /* time of the sample; 0: there is none */
	int64_t since_us;
	struct sample_stack stack;
	bool runnable;
	const char *runq_why;
};

#define SLEEPS_BYTES (2 * sizeof(struct sleep_stack))
#define SAME_SLEEP_US 2 /* times are rounded */

static struct sleep_stack *sleeps_of(struct sleep_stacks *stacks, int64_t tid)
{
	if (stacks->threads.count == SLEEP_STACKS_MAX &&
	    !keyed_find(&stacks->threads, SLEEPS_BYTES, (uint64_t)tid))
		sleep_stacks_clear(stacks);
	return keyed_put(&stacks->threads, SLEEPS_BYTES, (uint64_t)tid, NULL);
}

static bool shows_wait(const struct sample *sample)
{
	if (sample->now.state == STATE_RQ)
		return sample->now.runq_why;
	return (sample->now.state == STATE_SLEEP || sample->now.state == STATE_DISK) &&
	       (sample->stack.ustack != ABSENT || sample->stack.kstack != ABSENT);
}

void sleep_stacks_note(struct sleep_stacks *stacks, const struct sample *sample)
{
	struct sleep_stack *sleeps;
	int64_t since_us;

	if (sample->now.state_us == ABSENT || !shows_wait(sample))
		return;
	sleeps = sleeps_of(stacks, sample->thread.tid);
	since_us = sample->scan.time_us - sample->now.state_us;
	if (since_us > sleeps[0].since_us + SAME_SLEEP_US)
		sleeps[1] = sleeps[0];
	sleeps[0] = (struct sleep_stack){
		.time_us = sample->scan.time_us,
		.since_us = since_us,
		.stack = sample->stack,
		.runnable = sample->now.state == STATE_RQ,
		.runq_why = sample->now.runq_why,
	};
}

void sleep_stacks_fill(const struct sleep_stacks *stacks, struct sample *who, bool runnable,
		       int64_t duration_ns)
{
	const struct sleep_stack *sleep =
		keyed_find(&stacks->threads, SLEEPS_BYTES, (uint64_t)who->thread.tid);
	int64_t begin_us = who->scan.time_us - duration_ns / NS_PER_US;

	if (!sleep || (who->now.state == ABSENT && !runnable))
		return;
	for (int i = 0; i < 2; i++, sleep++) {
		if (sleep->time_us <= begin_us || sleep->time_us >= who->scan.time_us ||
		    sleep->runnable != runnable)
			continue;
		if (runnable) {
			who->now.runq_why = sleep->runq_why;
			return;
		}
		who->stack = sleep->stack;
		return;
	}
}

void sleep_stacks_clear(struct sleep_stacks *stacks)
{
	keyed_empty(&stacks->threads);
}

void sleep_stacks_done(struct sleep_stacks *stacks)
{
	keyed_done(&stacks->threads);
}

static int stack_compare(const void *a, const void *b)
{
	const struct sleep_sum *x = a, *y = b;

	if (x->ustack != y->ustack)
		return x->ustack < y->ustack ? -1 : 1;
	if (x->kstack != y->kstack)
		return x->kstack < y->kstack ? -1 : 1;
	return (x->ended_us > y->ended_us) - (x->ended_us < y->ended_us);
}

static int sum_compare(const void *a, const void *b)
{
	const struct sleep_sum *x = a, *y = b;

	if (!x->stack != !y->stack)
		return x->stack ? -1 : 1;
	return (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
}

struct sleep_sum *sleep_sums_make(const struct event_list *events, size_t *count)
{
	struct sleep_sum *sums = memory_get((events->count + 1) * sizeof(*sums));
	size_t sleeps = 0;

	*count = 0;
	for (size_t i = 0; i < events->count; i++) {
		const struct sample *who = &events->items[i].who;

		if (who->now.state != ABSENT)
			sums[sleeps++] = (struct sleep_sum){who->stack.ustack,
							    who->stack.kstack,
							    who->stack.both,
							    1,
							    events->items[i].duration_ns,
							    who->scan.time_us};
	}
	qsort(sums, sleeps, sizeof(*sums), stack_compare);
	for (size_t i = 0; i < sleeps; i++) {
		struct sleep_sum *last = *count ? &sums[*count - 1] : NULL;

		if (!last || last->ustack != sums[i].ustack || last->kstack != sums[i].kstack) {
			sums[(*count)++] = sums[i];
			continue;
		}
		/* functions may have names in a later sample that were not known before */
		last->stack = sums[i].stack;
		last->ended_us = sums[i].ended_us;
		last->count++;
		last->duration_ns = sum(last->duration_ns, sums[i].duration_ns);
	}
	qsort(sums, *count, sizeof(*sums), sum_compare);
	return sums;
}
