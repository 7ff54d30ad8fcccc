/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/time_rows.h"
#include "report/group_split.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

static const struct column time_column = {
	"time", "TIME", "", KIND_TEXT, ROLE_KEY, 0, 10, 0,
};

void time_rows_init(struct time_rows *rows, int64_t step_us, const struct column_list *list)
{
	if (!step_us)
		return;
	rows->step_us = step_us;
	rows->from_us = ABSENT;
	rows->list = (struct column_list){.items = {&time_column}, .count = 1};
	for (size_t i = 0; i < list->count && rows->list.count < COLUMN_LIST_MAX; i++)
		rows->list.items[rows->list.count++] = list->items[i];
	grid_size(&rows->grid, &rows->list, 0);
}

/* Name of the present step, as short as the step allows: to the minute, the second or the
 * microsecond. */
static const char *step_name(const struct time_rows *rows)
{
	char text[CLOCK_LOCAL_SIZE];
	size_t length = rows->step_us % (60 * US_PER_SECOND) == 0 ? 16
			: rows->step_us % US_PER_SECOND == 0	  ? 19
								  : 26;

	clock_format_local(rows->from_us, text);
	text[length] = '\0';
	return name_transient_string(text);
}

/* Appends the rows of the step to those of the steps before. */
static void step_add(struct time_rows *rows, struct group_table *groups)
{
	size_t columns = rows->list.count - 1, before = rows->grid.row_count, count;
	union value time;

	group_table_share_out(groups);
	group_table_end_interval(groups, &rows->tally);
	if (rows->times)
		exact_times_clear(rows->times);
	grid_fill_groups(&rows->step_grid, groups, &rows->tally);
	count = rows->step_grid.row_count;
	if (before + count > TIME_ROWS_MAX) {
		rows->refused += (int64_t)count;
		return;
	}
	grid_size(&rows->grid, &rows->list, before + count);
	rows->steps = memory_grow(rows->steps, &rows->step_capacity, rows->step_count + 1,
				  sizeof(*rows->steps));
	rows->steps[rows->step_count++] = (struct time_step){rows->from_us, before + count};
	time.text = step_name(rows);
	for (size_t i = 0; i < count; i++) {
		union value *to = rows->grid.values + (before + i) * rows->list.count;

		*to = time;
		memcpy(to + 1, grid_row(&rows->step_grid, i), columns * sizeof(*to));
	}
}

void time_rows_end(struct time_rows *rows, struct group_table *groups)
{
	if (!rows->step_us || rows->from_us == ABSENT)
		return;
	step_add(rows, groups);
	group_table_clear(groups);
	rows->tally = (struct tally){0};
	rows->from_us = ABSENT;
}

/* Begin of the step of that time. */
static int64_t step_from_us(const struct time_rows *rows, int64_t time_us)
{
	int64_t in_step = time_us % rows->step_us;

	return time_us - in_step - (in_step < 0 ? rows->step_us : 0);
}

bool time_rows_end_at(const struct time_rows *rows, int64_t time_us)
{
	return rows->step_us && rows->from_us != ABSENT &&
	       rows->from_us != step_from_us(rows, time_us);
}

void time_rows_begin(struct time_rows *rows, int64_t time_us, struct group_table *groups)
{
	if (!rows->step_us || rows->from_us == step_from_us(rows, time_us))
		return;
	time_rows_end(rows, groups);
	rows->from_us = step_from_us(rows, time_us);
}

void time_rows_done(struct time_rows *rows)
{
	grid_done(&rows->grid);
	grid_done(&rows->step_grid);
	free(rows->steps);
}
