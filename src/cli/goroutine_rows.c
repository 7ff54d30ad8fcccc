/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "goroutine_rows.h"
#include "base/memory.h"
#include "base/output.h"
#include "live/live_tasks.h"
#include "render/renderer.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct routine_row, member)

static const struct column goroutine_columns[] = {
	{"timestamp", "", "", KIND_TIME, ROLE_MEASURE, 0, 0, AT(time_us)},
	{"pid", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(pid)},
	{"go", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(version)},
	{"count", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(count)},
	{"state", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(state)},
	{"reason", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(reason)},
	{"waited_ns", "", "", KIND_NS, ROLE_MEASURE, 0, 0, AT(waited_ns)},
	{"runtime", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(runtime)},
	{"stack", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(stack)},
	{"context", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(context)}, /* if it is asked for */
};

static const struct column task_columns[] = {
	{"timestamp", "", "", KIND_TIME, ROLE_MEASURE, 0, 0, AT(time_us)},
	{"pid", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(pid)},
	{"python", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(version)},
	{"count", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(count)},
	{"state", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(state)},
	{"tid", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(tid)},
	{"names", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(names)},
	{"awaited_by", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(awaited_by)},
	{"stack", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(stack)},
};

#define COUNT_OF(columns) (sizeof(columns) / sizeof((columns)[0]))

struct rows {
	struct routine_row *items;
	size_t count, capacity;
};

static void row_take(void *to, const struct routine_row *row)
{
	struct rows *rows = to;

	rows->items =
		memory_grow(rows->items, &rows->capacity, rows->count + 1, sizeof(*rows->items));
	rows->items[rows->count++] = *row;
}

static void rows_write(const struct rows *rows, const struct column_list *list,
		       const struct renderer *renderer, struct text *out)
{
	struct grid grid = {0};
	const struct interval interval = {.grid = &grid};
	union value *value;

	grid_size(&grid, list, rows->count);
	value = grid.values;
	for (size_t row = 0; row < rows->count; row++)
		for (size_t i = 0; i < list->count; i++)
			*value++ = column_read(list->items[i], &rows->items[row]);
	if (renderer->begin)
		renderer->begin(out, list);
	renderer->add(out, &interval);
	grid_done(&grid);
}

int routines_read(const struct config *config, routine_callback *take, void *to, struct text *out,
		  struct error *e)
{
	if (config->tasks)
		return live_tasks(config->goroutines_pid, config->live.no_sandbox, take, to, out,
				  e);
	return live_goroutines(config->goroutines_pid, config->all_states,
			       config->goroutines_labels, config->live.no_sandbox, take, to, out,
			       e);
}

int routine_rows_print(const struct config *config, void (*complain)(const char *line),
		       struct error *e)
{
	const struct column *columns = config->tasks ? task_columns : goroutine_columns;
	struct column_list list = {.count = config->tasks ? COUNT_OF(task_columns)
							  : COUNT_OF(goroutine_columns) -
								    !config->goroutines_labels};
	struct text missed = {0}, out = {0};
	struct rows rows = {NULL, 0, 0};
	int err = routines_read(config, row_take, &rows, &missed, e);

	for (size_t i = 0; i < list.count; i++)
		list.items[i] = &columns[i];
	if (!err) {
		rows_write(&rows, &list, config->format, &out);
		err = output_write(STDOUT_FILENO, text_string(&out), out.length);
		if (err == -EPIPE)
			err = 0;
		if (err)
			error_set(e, -err, EXIT_FAILED, "standard output: %s", strerror(-err));
	}
	if (missed.length) {
		missed.bytes[strcspn(missed.bytes, "\n")] = 0;
		complain(text_string(&missed));
	}
	text_done(&missed);
	text_done(&out);
	free(rows.items);
	return err;
}
