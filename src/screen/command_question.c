/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that change the question. */
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "report/value.h"
#include "sample/wait_rule.h"

#include <stdio.h>
#include <string.h>

/* Next key after a value is kept: all rows have the same value in its column, so another column
 * replaces it. */
static const struct deeper {
	const char *column, *next;
} deeper_table[] = {
	{"state", "comm"},     {"user", "exe"},		 {"commsum", "comm"},
	{"comm", "pid"},       {"exe", "pid"},		 {"pid", "tid"},
	{"tid", "filename"},   {"syscall", "filename"},	 {"filenamesum", "filename"},
	{"filename", "tid"},   {"container", "unit"},	 {"unit", "comm"},
	{"cgroup", "comm"},    {"why", "waits_on"},	 {"waits_on", "tid"},
	{"connection", "tid"}, {"remote", "connection"}, {"waker_comm", "waker_tid"},
	{"kfunc", "kfuncs"},   {"ufunc", "ufuncs"},	 {"io_dev", "filename"},
};

static size_t list_find(const struct column_list *list, const struct column *column)
{
	size_t at = 0;

	while (at < list->count && list->items[at] != column)
		at++;
	return at;
}

static void list_remove(struct column_list *list, size_t at)
{
	memmove(list->items + at, list->items + at + 1,
		(--list->count - at) * sizeof(list->items[0]));
}

bool column_is_there(const struct shown *shown, const struct column *column, const char **why)
{
	bool kept = history_keeps(column);

	*why = kept ? "" : "not kept in the history: see it in a report (tsnap -G)";
	return kept && !(column->needs & ~shown->source.needs);
}

void view_load(struct view *view, const struct shown *shown, uint64_t needs, bool all_states)
{
	view->load_needs = shown->source.needs | sample_needs_close(needs);
	view->load_all_states = shown->source.all_states || all_states;
	view->request = REQUEST_LOAD;
}

/* Replaces the column by its next key. value: the value that was kept. */
static void go_deeper(struct question *question, const struct shown *shown, size_t at,
		      union value value)
{
	for (size_t i = 0; i < sizeof(deeper_table) / sizeof(deeper_table[0]); i++) {
		const struct column *next = sample_column_find(deeper_table[i].next);
		const char *why;

		if (strcmp(deeper_table[i].column, question->list.items[at]->name) != 0)
			continue;
		if (question->list.items[at]->kind == KIND_STATE && value.number == STATE_SLEEP)
			next = sample_column_find("why"); /* why is filled in state S only */
		if (list_find(&question->list, next) == question->list.count &&
		    column_is_there(shown, next, &why))
			question->list.items[at] = next;
		return;
	}
}

/* Adds the value as an expression has it. */
static void add_operand(struct text *text, const struct column *column, union value value)
{
	struct text words = {0};

	value_add(&words, column, value);
	if (words.length && strspn(text_string(&words), "abcdefghijklmnopqrstuvwxyz"
							"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							"0123456789_./:@+-") == words.length) {
		text_add_string(text, text_string(&words));
	} else if (!value_is_absent(column, value)) {
		text_add_char(text, '"');
		for (const char *at = text_string(&words); *at; at++)
			text_add_format(text, *at == '"' ? "\\%c" : "%c", *at);
		text_add_char(text, '"');
	}
	text_done(&words);
}

/* Adds, as an expression, the threads that are shown if the filter does not name states. */
static void add_active(struct text *text)
{
	const char *between = "";

	text_add_string(text, "(state=||state~\"^(");
	for (int64_t state = 0; state < STATE_COUNT; state++)
		if (state_row(state)->active) {
			text_add_format(text, "%s%s", between, state_row(state)->name);
			between = "|";
		}
	text_add_string(text, ")$\"||state=S&&why~\"^(");
	between = "";
	for (size_t i = 0; i < wait_rule_count; i++)
		/* adds a name only once: several rules may have it */
		if (wait_rules[i].works && wait_rule_find(wait_rules[i].name) == &wait_rules[i]) {
			text_add_format(text, "%s%s", between, wait_rules[i].name);
			between = "|";
		}
	text_add_string(text, ")$\")");
}

/* True if the question's filter itself says which states are wanted. */
static bool names_states(const struct question *question)
{
	struct filter filter = {0};
	struct error e = {0};
	bool names = !question_filter(question, &filter, &e) && filter.states;

	filter_done(&filter);
	error_done(&e);
	return names;
}

bool condition_widens(const struct column *column, union value value, bool wanted)
{
	const struct state_row *state = state_row(value.number);

	return column->kind == KIND_STATE && !(wanted && state && state->active);
}

void add_filter(struct text *text, const struct question *question, bool widens,
		const char *condition)
{
	bool grouped = strstr(question->filter, "||") != NULL;

	if (question->filter[0])
		text_add_format(text, grouped ? "(%s) && " : "%s && ", question->filter);
	if (widens && !question->all_states && !names_states(question)) {
		add_active(text);
		text_add_string(text, " && ");
	}
	text_add_string(text, condition);
}

bool question_keep(struct view *view, bool widens, const char *condition)
{
	struct text filter = {0};
	bool fits;

	add_filter(&filter, &view->now, widens, condition);
	fits = filter.length < sizeof(view->now.filter);
	if (fits)
		text_into(view_step(view, "%s", condition)->filter, VIEW_INPUT_SIZE,
			  text_string(&filter));
	else
		view_say(view, true, "The filter would be longer than %d bytes",
			 EXPRESSION_BYTES_MAX);
	text_done(&filter);
	return fits;
}

void add_condition(struct text *text, const struct column *column, union value value, bool wanted)
{
	text_add_format(text, "%s%s=", wanted ? "" : "!", column->name);
	add_operand(text, column, value);
}

/* The column under the cursor; NULL: none, or not a key (then with a message). */
static const struct column *column_of_question(struct view *view, const struct shown *shown)
{
	const struct column *column;

	if (view->row >= shown->grid.row_count || view->column >= shown->list.count)
		return NULL;
	column = shown->list.items[view->column];
	if (column->role == ROLE_KEY)
		return column;
	view_say(view, true, "%s is counted, not grouped by: move the cursor to a key (Right)",
		 column->name);
	return NULL;
}

void command_keep(struct view *view, const struct shown *shown)
{
	const struct column *column = column_of_question(view, shown);
	struct text condition = {0};
	union value value;

	if (!column)
		return;
	value = shown_row(shown, view->row)[view->column];
	add_condition(&condition, column, value, true);
	if (question_keep(view, condition_widens(column, value, true), text_string(&condition))) {
		go_deeper(&view->now, shown, view->column, value);
		view->row = view->top = 0;
	}
	text_done(&condition);
}

void command_exclude(struct view *view, const struct shown *shown)
{
	const struct column *column = column_of_question(view, shown);
	struct text condition = {0};
	union value value;

	if (!column)
		return;
	value = shown_row(shown, view->row)[view->column];
	add_condition(&condition, column, value, false);
	question_keep(view, condition_widens(column, value, false), text_string(&condition));
	text_done(&condition);
}

void command_undo(struct view *view, const struct shown *shown)
{
	(void)shown;
	if (!view_undo(view))
		view_say(view, true, "There is no step to undo");
}

void command_filter(struct view *view, const struct shown *shown)
{
	(void)shown;
	prompt_open(view, &prompt_filter, view->now.filter);
}

void command_columns(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_columns);
}

void command_sort(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_sort);
}

void command_views(struct view *view, const struct shown *shown)
{
	(void)shown;
	list_open(view, &list_views);
}

void question_sort_by(struct view *view, const struct column *column)
{
	bool again = view->now.sort == column;
	struct question *question = view_step(view, again ? "reverse" : "sort %s", column->name);

	question->reversed = again && !question->reversed;
	question->sort = column;
	view->row = view->top = 0;
}

void command_sort_here(struct view *view, const struct shown *shown)
{
	(void)shown;
	question_sort_by(view, view->now.list.items[view->column]);
}

static void column_swap(struct view *view, size_t with)
{
	struct question *question =
		view_step(view, "move %s", view->now.list.items[view->column]->name);
	const struct column *column = question->list.items[view->column];

	question->list.items[view->column] = question->list.items[with];
	question->list.items[with] = column;
	view->column = with;
}

void command_column_left(struct view *view, const struct shown *shown)
{
	(void)shown;
	if (view->column)
		column_swap(view, view->column - 1);
}

void command_column_right(struct view *view, const struct shown *shown)
{
	(void)shown;
	if (view->column + 1 < view->now.list.count)
		column_swap(view, view->column + 1);
}

void command_column_drop(struct view *view, const struct shown *shown)
{
	struct question *question;

	(void)shown;
	if (view->now.list.count == 1) {
		view_say(view, true, "This is the last column");
		return;
	}
	question = view_step(view, "-%s", view->now.list.items[view->column]->name);
	if (question->sort == question->list.items[view->column])
		question->sort = NULL;
	list_remove(&question->list, view->column);
	if (view->column == question->list.count)
		view->column--;
}

void command_all_states(struct view *view, const struct shown *shown)
{
	struct question *question;

	if (!view->now.all_states && !shown->source.all_states) {
		view_load(view, shown, 0, true);
		view_say(view, false,
			 "Idle threads are sampled from now on, at the cost of looking at all");
	}
	question = view_step(view, view->now.all_states ? "active" : "all states");
	question->all_states = !question->all_states;
}

/* Restricts the question to that thread or process. */
static void follow(struct view *view, const char *key, int64_t id)
{
	struct question *question = view_step(view, "follow %s %lld", key, (long long)id);
	struct error e = {0};

	snprintf(question->filter, sizeof(question->filter), "%s=%lld", key, (long long)id);
	question->list = (struct column_list){0};
	column_list_add(&question->list, REPORT_MEASURES_DEFAULT ",state,syscall,filename", true,
			&e);
	error_done(&e);
	question->sort = NULL;
	view->row = view->column = view->top = view->left = 0;
}

void command_follow(struct view *view, const struct shown *shown)
{
	static const char *const keys[] = {"tid", "pid"};

	for (size_t i = 0; i < 2 && view->row < shown->grid.row_count; i++) {
		size_t at = list_find(&shown->list, sample_column_find(keys[i]));
		int64_t id =
			at < shown->list.count ? shown_row(shown, view->row)[at].number : ABSENT;

		if (id == ABSENT)
			continue;
		follow(view, keys[i], id);
		return;
	}
	view_say_key(view, true, command_columns,
		     "This row is no single thread or process: %s adds tid or pid");
}
