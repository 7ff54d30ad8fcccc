/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/event_list.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "base/memory.h"

#include <stdlib.h>

#define AT(member) offsetof(struct event, member)

static const struct column reported_columns[] = {
	{"timestamp", "ENDED", "", KIND_TIME, ROLE_MEASURE, 0, 27, AT(who.scan.time_us)},
	{"trace", "TRACE", "", KIND_TEXT, ROLE_MEASURE, 0, 8, AT(trace)},
	{"duration_ns", "TOOK", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(duration_ns)},
	{"bytes", "BYTES", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(who.io.bytes)},
};

#define REPORTED_COUNT (sizeof(reported_columns) / sizeof(reported_columns[0]))

int event_list_init(struct event_list *events, const char *keys, const char *more, struct error *e)
{
	struct column_list chosen = {0};
	int err = column_list_add(&chosen, keys, true, e);

	if (!err && more)
		err = column_list_add(&chosen, more, true, e);
	if (err)
		return err;
	*events = (struct event_list){0};
	for (size_t i = 0; i < REPORTED_COUNT; i++)
		events->list.items[events->list.count++] = &reported_columns[i];
	for (size_t i = 0; i < chosen.count && events->list.count < COLUMN_LIST_MAX; i++)
		if (chosen.items[i]->role == ROLE_KEY && chosen.items[i]->kind != KIND_TIME)
			events->list.items[events->list.count++] = chosen.items[i];
	return 0;
}

uint64_t event_list_needs(const struct event_list *events)
{
	return column_list_needs(&events->list);
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
