/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/history_columns.h"
#include "report/measure.h"
#include "sample/proc_values.h"

#include <pthread.h>

struct history_columns history_who, history_what;

#define NUMBER(part, member, way, in) {offsetof(struct sample, part.member), (way), (in)},

const struct history_number history_numbers[HISTORY_NUMBER_COUNT] = {HISTORY_NUMBERS(NUMBER)};

/* Columns whose values differ in every call, or that only single events have. */
static bool is_left_out(const struct column *column)
{
	return column->offset == offsetof(struct sample, scan.time_us) ||
	       column_is_proc_value(column) ||
	       (column->offset >= offsetof(struct sample, call.nr) &&
		column->offset < offsetof(struct sample, call.name)) ||
	       (column->offset >= offsetof(struct sample, event) &&
		column->offset < offsetof(struct sample, event) + sizeof(struct sample_event));
}

static bool is_number(const struct column *column)
{
	for (size_t i = 0; i < HISTORY_NUMBER_COUNT; i++)
		if (history_numbers[i].offset == column->offset)
			return true;
	return false;
}

bool history_varies(const struct column *column)
{
	return is_left_out(column) || is_number(column);
}

/* Inserts the column in the order of offsets. */
static void column_insert(struct history_columns *columns, const struct column *column)
{
	size_t at = columns->count++;

	for (; at && columns->items[at - 1]->offset > column->offset; at--)
		columns->items[at] = columns->items[at - 1];
	columns->items[at] = column;
}

static void runs_find(struct history_columns *columns)
{
	const uint32_t each = sizeof(union value);

	for (size_t i = 0; i < columns->count; i++) {
		uint32_t offset = (uint32_t)columns->items[i]->offset;
		struct history_run *last = columns->runs + columns->run_count - !!i;

		if (i && last->offset + last->bytes == offset)
			last->bytes += each;
		else
			columns->runs[columns->run_count++] = (struct history_run){offset, each};
	}
}

static void columns_find(void)
{
	const size_t state = offsetof(struct sample, now);

	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (history_varies(column))
			continue;
		if (column->offset < state && history_who.count < HISTORY_WHAT_MAX)
			column_insert(&history_who, column);
		else if (column->offset >= state && history_what.count < HISTORY_WHAT_MAX)
			column_insert(&history_what, column);
	}
	runs_find(&history_who);
	runs_find(&history_what);
}

void history_columns_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, columns_find);
}

bool history_keeps(const struct column *column)
{
	if (column->role == ROLE_MEASURE)
		return !part_measure_of(column);
	return !is_left_out(column) || column->offset == offsetof(struct sample, scan.time_us);
}
