/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/history_columns.h"
#include "sample/proc_values.h"

#include <pthread.h>

const struct column *history_who[HISTORY_WHO_MAX], *history_what[HISTORY_WHAT_MAX];
size_t history_who_count, history_what_count;

#define NUMBER(member, way, in) {offsetof(struct sample, member), (way), (in)},

const struct history_number history_numbers[HISTORY_NUMBER_COUNT] = {HISTORY_NUMBERS(NUMBER)};

/* Columns whose values differ in every call, or that only single events have. */
static bool is_left_out(const struct column *column)
{
	return column->offset == offsetof(struct sample, time_us) || column_is_proc_value(column) ||
	       (column->offset >= offsetof(struct sample, syscall_nr) &&
		column->offset < offsetof(struct sample, syscall)) ||
	       column->offset == offsetof(struct sample, error) ||
	       column->offset == offsetof(struct sample, comm_before);
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

static void columns_find(void)
{
	const size_t state = offsetof(struct sample, state);

	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (history_varies(column))
			continue;
		if (column->offset < state && history_who_count < HISTORY_WHO_MAX)
			history_who[history_who_count++] = column;
		else if (column->offset >= state && history_what_count < HISTORY_WHAT_MAX)
			history_what[history_what_count++] = column;
	}
}

void history_columns_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, columns_find);
}

bool history_keeps(const struct column *column)
{
	return column->role == ROLE_MEASURE || !is_left_out(column) ||
	       column->offset == offsetof(struct sample, time_us);
}
