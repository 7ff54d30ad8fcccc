/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/view.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int view_init(struct view *view, const struct query *query, struct error *e)
{
	struct question *question = &view->now;
	struct filter filter = {0};
	int err;

	*view = (struct view){.refresh_us = VIEW_REFRESH_DEFAULT_US};
	question->window_us = VIEW_WINDOW_DEFAULT_US;
	question->until_us = question->mark_us = ABSENT;
	question->all_states = query->all_states;
	err = column_list_add(&question->list, REPORT_MEASURES_DEFAULT, true, e);
	if (!err)
		err = query_columns(query, REPORT_COLUMNS_DEFAULT, true, &question->list, e);
	if (!err && query->more_columns)
		err = column_list_add(&question->list, query->more_columns, true, e);
	if (err)
		return err;
	if (query->filter && !text_into(question->filter, sizeof(question->filter), query->filter))
		return error_set(e, EINVAL, EXIT_USAGE, "--filter: longer than %d bytes",
				 EXPRESSION_BYTES_MAX);
	/* the cursor begins in a column where Enter has an effect */
	while (view->column + 1 < question->list.count &&
	       question->list.items[view->column]->role != ROLE_KEY)
		view->column++;
	err = question_filter(question, &filter, e);
	filter_done(&filter);
	return err;
}

struct question *view_step(struct view *view, const char *label_format, ...)
{
	va_list args;

	if (view->undo_count == VIEW_UNDO_MAX)
		memmove(view->undo, view->undo + 1, --view->undo_count * sizeof(view->undo[0]));
	view->undo[view->undo_count++] = view->now;
	va_start(args, label_format);
	vsnprintf(view->now.label, sizeof(view->now.label), label_format, args);
	va_end(args);
	return &view->now;
}

bool view_undo(struct view *view)
{
	if (!view->undo_count)
		return false;
	view->now = view->undo[--view->undo_count];
	if (view->column >= view->now.list.count)
		view->column = view->now.list.count - 1;
	return true;
}

void view_say(struct view *view, bool failed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(view->message, sizeof(view->message), format, args);
	va_end(args);
	view->failed = failed;
}

int question_filter(const struct question *question, struct filter *filter, struct error *e)
{
	const struct query query = {
		.filter = question->filter[0] ? question->filter : NULL,
		.all_states = question->all_states,
		.recorded = true,
	};

	return query_filter(&query, filter, e);
}

static bool is_of_thread(const struct column *column)
{
	return column->offset == offsetof(struct sample, thread.tid);
}

bool question_is_of_threads(const struct question *question)
{
	struct filter filter = {0};
	struct error unsaid = {0};
	bool of_threads = !question_filter(question, &filter, &unsaid) &&
			  expression_reads(&filter.expression, is_of_thread);

	for (size_t i = 0; i < question->list.count; i++)
		of_threads |= is_of_thread(question->list.items[i]);
	filter_done(&filter);
	error_done(&unsaid);
	return of_threads;
}

bool question_differs(const struct question *a, const struct question *b)
{
	return a->list.count != b->list.count ||
	       memcmp(a->list.items, b->list.items, a->list.count * sizeof(a->list.items[0])) ||
	       strcmp(a->filter, b->filter) != 0 || a->all_states != b->all_states ||
	       a->sort != b->sort || a->reversed != b->reversed || a->window_us != b->window_us ||
	       a->until_us != b->until_us || a->mark_us != b->mark_us;
}
