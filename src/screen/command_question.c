/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that change the question. */
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "report/measure.h"
#include "report/value.h"
#include "sample/needs_table.h"
#include "sample/wait_rule.h"

#include <stdio.h>
#include <stdlib.h>
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
		if (wait_rules[i].traits & WAIT_WORKS &&
		    wait_rule_find(wait_rules[i].name) == &wait_rules[i]) {
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

bool question_keep(struct view *view, const char *base, bool widens, const char *condition)
{
	struct question before = view->now;
	struct text filter = {0};
	bool fits;

	text_into(before.filter, sizeof(before.filter), base);
	add_filter(&filter, &before, widens, condition);
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

void command_keep(struct view *view, const struct shown *shown, int64_t by)
{
	const struct column *column = column_of_question(view, shown);
	struct text condition = {0};
	union value value;

	if (!column)
		return;
	value = shown_row(shown, view->row)[view->column];
	add_condition(&condition, column, value, true);
	if (question_keep(view, view->now.filter, condition_widens(column, value, true),
			  text_string(&condition))) {
		go_deeper(&view->now, shown, view->column, value);
		view->row = view->top = 0;
	}
	text_done(&condition);
}

void command_exclude(struct view *view, const struct shown *shown, int64_t by)
{
	const struct column *column = column_of_question(view, shown);
	struct text condition = {0};
	union value value;

	if (!column)
		return;
	value = shown_row(shown, view->row)[view->column];
	add_condition(&condition, column, value, false);
	question_keep(view, view->now.filter, condition_widens(column, value, false),
		      text_string(&condition));
	text_done(&condition);
}

void command_undo(struct view *view, const struct shown *shown, int64_t by)
{
	if (!view_undo(view))
		view_say(view, true, "There is no step to undo");
}

void command_sort_here(struct view *view, const struct shown *shown, int64_t by)
{
	question_sort_by(view, view->now.list.items[view->column]);
}

/* --- the filter */

/* Shows the parser's error at the character that its message names. */
static void filter_error(struct prompt *prompt, const char *line)
{
	const char *number = strstr(line, "at character "), *what;
	size_t at = SIZE_MAX, left = number ? strtoul(number + 13, NULL, 10) : 0;

	if (left) {
		for (at = 0; prompt->text[at] && --left;)
			do
				at++;
			while (((unsigned char)prompt->text[at] & 0xc0) == 0x80);
	}
	/* message after the quoted line */
	what = number ? strstr(number, "': ") : NULL;
	prompt_fail(prompt, at, what ? what + 3 : line);
}

static bool filter_done_typing(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	struct question question = view->now;
	struct filter filter = {0};
	struct error e = {0};
	int err;

	if (!strcmp(prompt->text, view->now.filter))
		return true;
	text_into(question.filter, sizeof(question.filter), prompt->text);
	err = question_filter(&question, &filter, &e);
	if (err)
		filter_error(prompt, e.line);
	else
		text_into(
			view_step(view, "%s", prompt->text[0] ? prompt->text : "no filter")->filter,
			VIEW_INPUT_SIZE, prompt->text);
	filter_done(&filter);
	error_done(&e);
	return !err;
}

#define COMPLETIONS_SHOWN 40

/* Completions of a word: names of columns, or values of a column of the table. */
struct completing {
	const char *word;
	size_t length;
	struct text common; /* longest common prefix of all matches */
	struct text names;  /* the first ones */
	size_t count;
};

static void completion_offer(struct completing *completing, const char *whole)
{
	size_t same = 0;

	if (strncmp(whole, completing->word, completing->length) != 0)
		return;
	if (completing->count < COMPLETIONS_SHOWN)
		text_add_format(&completing->names, "%s%s", completing->count ? "  " : "", whole);
	if (!completing->count++) {
		text_add_string(&completing->common, whole);
		return;
	}
	while (whole[same] && whole[same] == completing->common.bytes[same])
		same++;
	text_end(&completing->common, completing->common.bytes + same);
}

static void values_offer(struct completing *completing, const struct shown *shown, const char *name,
			 size_t length)
{
	struct text value = {0};

	for (size_t i = 0; i < shown->list.count; i++) {
		const struct column *column = shown->list.items[i];

		if (strlen(column->name) != length || strncmp(column->name, name, length) != 0)
			continue;
		for (size_t row = 0; row < shown->grid.row_count; row++) {
			text_clear(&value);
			value_add(&value, column, shown_row(shown, row)[i]);
			if (value.length)
				completion_offer(completing, text_string(&value));
		}
	}
	text_done(&value);
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static void filter_complete(struct view *view, const struct shown *shown)
{
	struct prompt *prompt = &view->prompt;
	size_t start = prompt->at, name;
	struct completing completing = {0};

	while (start && !strchr(" ()&|!=<>~\"", prompt->text[start - 1]))
		start--;
	completing.word = prompt->text + start;
	completing.length = prompt->at - start;
	for (name = start; name && strchr("=!~", prompt->text[name - 1]); name--)
		;
	if (name < start && name && strchr(NAME_LETTERS, prompt->text[name - 1])) {
		size_t end = name;

		while (name && strchr(NAME_LETTERS, prompt->text[name - 1]))
			name--;
		values_offer(&completing, shown, prompt->text + name, end - name);
	} else {
		for (size_t i = 0; i < sample_column_count; i++)
			completion_offer(&completing, sample_columns[i].name);
	}
	if (completing.count && completing.common.length > completing.length)
		prompt_insert(prompt, completing.common.bytes + completing.length);
	if (completing.count != 1)
		prompt_fail(prompt, SIZE_MAX,
			    completing.count ? text_string(&completing.names)
					     : "Nothing begins so");
	text_done(&completing.common);
	text_done(&completing.names);
}

static const struct prompt_kind prompt_filter = {"Filter: ", filter_done_typing, filter_complete};

void command_filter(struct view *view, const struct shown *shown, int64_t by)
{
	prompt_open(view, &prompt_filter, view->now.filter);
}

/* --- columns */

void command_column_move(struct view *view, const struct shown *shown, int64_t by)
{
	size_t with = view->column + (size_t)by;
	const struct column **items, *column;

	if (with >= view->now.list.count) /* also to the left of the first one */
		return;
	column = view->now.list.items[view->column];
	items = view_step(view, "move %s", column->name)->list.items;
	items[view->column] = items[with];
	items[with] = column;
	view->column = with;
}

void command_column_drop(struct view *view, const struct shown *shown, int64_t by)
{
	struct question *question;

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

/* The list of columns: measures, then all columns of samples. */
static const struct column *column_of_item(size_t item)
{
	return item < measure_column_count ? &measure_columns[item]
					   : &sample_columns[item - measure_column_count];
}

static size_t columns_count(const struct view *view, const struct shown *shown)
{
	return measure_column_count + sample_column_count;
}

/* Adds the source of the column's values and their cost: "(file: when sampled)". */
static void add_cost(struct text *help, const struct column *column)
{
	for (size_t i = needs_row_count; i--;)
		if (needs_rows[i].need && needs_rows[i].need & column->needs) {
			text_add_format(help, " (%s: %s)", needs_rows[i].name,
					needs_cost_names[needs_rows[i].cost]);
			return;
		}
}

static void columns_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
	const struct column *column = column_of_item(item);
	const char *why;

	text_add_string(name, column->name);
	text_add_string(help, column->help);
	add_cost(help, column);
	if (!column_is_there(shown, column, &why))
		text_add_format(help, "; %s", *why ? why : "not sampled yet: Enter loads it");
}

static bool columns_marked(const struct view *view, const struct shown *shown, size_t item)
{
	return list_find(&view->now.list, column_of_item(item)) < view->now.list.count;
}

static void columns_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct column *column = column_of_item(item);
	size_t at = list_find(&view->now.list, column);
	struct error e = {0};
	const char *why;

	if (at < view->now.list.count) {
		view->column = at;
		command_column_drop(view, shown, 0);
		return;
	}
	if (!column_is_there(shown, column, &why)) {
		if (*why) {
			view_say(view, true, "%s is %s", column->name, why);
			return;
		}
		view_load(view, shown, column->needs, false);
		view_say(view, false, "%s is sampled from now on", column->name);
	}
	column_list_add(&view_step(view, "+%s", column->name)->list, column->name, true, &e);
	error_done(&e);
	view->column = view->now.list.count - 1;
}

static const struct list_kind list_columns = {
	.title = "Columns",
	.hint = "Enter adds or removes, letters search, Esc closes",
	.count = columns_count,
	.item = columns_item,
	.marked = columns_marked,
	.choose = columns_choose,
	.stays = true,
};

void command_columns(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_columns);
}

void question_sort_by(struct view *view, const struct column *column)
{
	bool again = view->now.sort == column;
	struct question *question = view_step(view, again ? "reverse" : "sort %s", column->name);

	question->reversed = again && !question->reversed;
	question->sort = column;
	view->row = view->top = 0;
}

static size_t sort_count(const struct view *view, const struct shown *shown)
{
	return view->now.list.count;
}

static void sort_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	text_add_string(name, view->now.list.items[item]->name);
	text_add_string(help, view->now.list.items[item]->help);
}

static bool sort_marked(const struct view *view, const struct shown *shown, size_t item)
{
	return view->now.sort == view->now.list.items[item];
}

static void sort_choose(struct view *view, const struct shown *shown, size_t item)
{
	question_sort_by(view, view->now.list.items[item]);
}

static const struct list_kind list_sort = {
	.title = "Sort by",
	.hint = "Enter sorts, the sorted one again: in reverse; Esc closes",
	.count = sort_count,
	.item = sort_item,
	.marked = sort_marked,
	.choose = sort_choose,
};

void command_sort(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_sort);
}

/* --- threads */

void command_all_states(struct view *view, const struct shown *shown, int64_t by)
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

void command_follow(struct view *view, const struct shown *shown, int64_t by)
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
		     "This row is not a single thread or process: %s adds tid or pid");
}
