/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peeking at a row: its keys become a filter, and a list shows the samples that pass it. */
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "report/value.h"

#include <stdio.h>
#include <string.h>

#define BUCKET_WIDTH 30 /* greatest length of a bar, in characters */

void command_peek(struct view *view, const struct shown *shown)
{
	struct text filter = {0}, title = {0}, condition = {0};
	bool any = false, widens = false;

	if (view->row >= shown->grid.row_count)
		return;
	for (size_t i = 0; i < shown->list.count; i++) {
		const struct column *column = shown->list.items[i];
		union value value = shown_row(shown, view->row)[i];

		if (column->role != ROLE_KEY)
			continue;
		text_add_string(&condition, condition.length ? " && " : "");
		add_condition(&condition, column, value, true);
		text_add_string(&title, title.length ? ", " : "");
		shown_add_value(&title, column, value);
		any = true;
		widens |= condition_widens(column, value, true);
	}
	if (any) {
		add_filter(&filter, &view->now, widens, text_string(&condition));
	} else {
		text_add_string(&filter, view->now.filter);
		text_add_string(&title, "all");
	}
	if (filter.length < sizeof(view->peek)) {
		text_into(view->peek, sizeof(view->peek), text_string(&filter));
		snprintf(view->peek_title, sizeof(view->peek_title), "%s", text_string(&title));
		list_open(view, &list_peek);
	} else {
		view_say(view, true, "The filter would be longer than %d bytes",
			 EXPRESSION_BYTES_MAX);
	}
	text_done(&filter);
	text_done(&title);
	text_done(&condition);
}

static bool stacks_are_sampled(const struct shown *shown)
{
	return !(NEED_STACK & ~shown->source.needs);
}

/* Number of items for what --trace measured; on a live source without any, one item says so. */
static size_t trace_items(const struct shown *shown)
{
	const struct peek *peek = &shown->peek;

	return peek->trace_line_count || shown->source.recording ? peek->trace_line_count : 1;
}

/* True if the item is one of trace_items(), which come after those of columns. */
static bool is_trace_item(const struct shown *shown, size_t item)
{
	return item >= shown->peek.count && item - shown->peek.count < trace_items(shown);
}

/* The stack's node that the item shows; NULL: another kind of item, or the stacks are not
 * sampled. */
static const struct tree_node *peek_node(const struct shown *shown, size_t item)
{
	const struct peek *peek = &shown->peek;
	size_t before = peek->count + trace_items(shown);

	return item >= before && item - before < peek->stacks.row_count
		       ? tree_row(&peek->stacks, item - before)
		       : NULL;
}

static size_t peek_count(const struct view *view, const struct shown *shown)
{
	(void)view;
	return shown->peek.count + trace_items(shown) +
	       (stacks_are_sampled(shown) ? shown->peek.stacks.row_count : 1);
}

static void add_duration(struct text *text, int64_t ns)
{
	struct text duration = {0};

	text_add_duration(&duration, ns);
	text_add_spaces(text, duration.length < 8 ? 8 - duration.length : 0);
	text_add(text, text_string(&duration), duration.length);
	text_done(&duration);
}

/* "1.02 ms ..  2.05 ms      120  ##########" */
static void add_bucket(struct text *help, const struct peek_trace *trace, int bucket)
{
	int64_t count = trace->histogram.buckets[bucket];
	struct text number = {0};

	add_duration(help, histogram_low_ns(bucket));
	text_add_string(help, bucket == HISTOGRAM_BUCKETS - 1 ? " on " : " .. ");
	if (bucket == HISTOGRAM_BUCKETS - 1)
		text_add_spaces(help, 8);
	else
		add_duration(help, histogram_high_ns(bucket));
	text_add_number(&number, count);
	text_add_spaces(help, number.length < 9 ? 9 - number.length : 1);
	text_add_string(help, text_string(&number));
	text_done(&number);
	text_add_string(help, "  ");
	/* any event is worth a mark */
	for (int64_t marks = count ? 1 + ratio(count, BUCKET_WIDTH - 1, trace->most) : 0; marks;
	     marks--)
		text_add_char(help, '#');
}

static void trace_item(const struct shown *shown, size_t line, struct text *name, struct text *help)
{
	const struct peek_trace_line *of = &shown->peek.trace_lines[line];
	const struct peek_trace *trace = &shown->peek.traces[of->trace];
	const struct histogram *histogram = &trace->histogram;
	const struct {
		const char *name;
		int64_t ns;
	} reported[] = {{"p50", histogram_quantile_ns(histogram, 500)},
			{"p90", histogram_quantile_ns(histogram, 900)},
			{"p99", histogram_quantile_ns(histogram, 990)},
			{"max", histogram->max_ns},
			{"total", histogram->sum_ns}};

	if (!shown->peek.trace_line_count) {
		text_add_string(name, "durations");
		text_add_string(
			help, shown->source.traces
				      ? "none was traced in this window"
				      : "not traced yet: Enter traces waits for a CPU, and sleeps");
		return;
	}
	text_add_string(name, trace->kind->name);
	if (of->bucket != PEEK_TRACE_SUM) {
		add_bucket(help, trace, of->bucket);
		return;
	}
	text_add_format(help, "%lld", (long long)histogram_count(histogram));
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		text_add_format(help, ", %s ", reported[i].name);
		text_add_duration(help, reported[i].ns);
	}
	text_add_format(help, ": %s", trace->kind->help);
}

static void add_shares(struct text *help, int64_t avg_thr, int64_t share)
{
	text_add_decimals(help, avg_thr, 2);
	text_add_spaces(help, help->length < 7 ? 7 - help->length : 0);
	text_add_decimals(help, share, 1);
	text_add_string(help, "%");
	text_add_spaces(help, help->length < 15 ? 15 - help->length : 1);
}

static void peek_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	const struct peek *peek = &shown->peek;
	const struct tree_node *node = peek_node(shown, item);

	(void)view;
	if (node) {
		text_add_string(name, "stack");
		add_shares(help, tally_avg_thr(&peek->tally, node->weight),
			   tally_share(&peek->tally, node->weight));
		tree_add_label(help, &peek->stacks, node);
	} else if (item < peek->count) {
		const struct peek_line *line = &peek->lines[item];

		text_add_string(name, line->column->name);
		add_shares(help, line->avg_thr, line->share);
		shown_add_value(help, line->column, line->value);
	} else if (is_trace_item(shown, item)) {
		trace_item(shown, item - peek->count, name, help);
	} else {
		text_add_string(name, "stack");
		text_add_string(help, "not sampled yet: Enter loads them");
	}
}

/* The histogram line that the item shows; NULL: another kind of item. */
static const struct peek_trace_line *peek_duration(const struct shown *shown, size_t item)
{
	return is_trace_item(shown, item) && shown->peek.trace_line_count
		       ? &shown->peek.trace_lines[item - shown->peek.count]
		       : NULL;
}

/* Adds the condition for samples taken within such a wait, with the time that it had lasted by
 * then: only events have the duration of a whole wait. */
static void add_duration_condition(struct text *text, const struct shown *shown,
				   const struct peek_trace_line *line, bool wanted)
{
	const struct trace_kind *kind = shown->peek.traces[line->trace].kind;
	int64_t low_us, high_us;

	text_add_format(text, "%s(%s", wanted ? "" : "!", kind->samples);
	if (line->bucket != PEEK_TRACE_SUM) {
		low_us = histogram_low_ns(line->bucket) / NS_PER_US;
		high_us = histogram_high_ns(line->bucket) / NS_PER_US;
		text_add_format(text, " && %s>=%lld", kind->so_far, (long long)low_us);
		if (line->bucket < HISTOGRAM_BUCKETS - 1)
			text_add_format(text, " && %s<%lld", kind->so_far,
					(long long)(high_us > low_us ? high_us : low_us + 1));
	}
	text_add_char(text, ')');
}

/* True if the condition alone would let idle threads in. */
static bool wants_idle(const char *condition)
{
	struct question question = {0};
	struct filter filter = {0};
	struct error e = {0};
	bool wants;

	text_into(question.filter, sizeof(question.filter), condition);
	wants = !question_filter(&question, &filter, &e) && filter_wants_idle(&filter);
	filter_done(&filter);
	error_done(&e);
	return wants;
}

/* Adds the condition that selects the item's samples; for frames: that the stack begins with them.
 * *widens is set as condition_widens() says. */
static void peek_condition(struct text *text, const struct shown *shown, size_t item, bool wanted,
			   bool *widens)
{
	const struct tree *stacks = &shown->peek.stacks;
	const struct tree_node *node = peek_node(shown, item);
	const struct peek_trace_line *duration = peek_duration(shown, item);

	if (node) {
		*widens = add_stack_condition(text, stacks, node, wanted);
		return;
	}
	if (duration) {
		add_duration_condition(text, shown, duration, wanted);
		*widens = wants_idle(text_string(text));
		return;
	}
	add_condition(text, shown->peek.lines[item].column, shown->peek.lines[item].value, wanted);
	*widens = condition_widens(shown->peek.lines[item].column, shown->peek.lines[item].value,
				   wanted);
}

/* True if the item can be kept or left out; requests the sampling of what is not sampled yet. */
static bool peek_can(struct view *view, const struct shown *shown, size_t item)
{
	const struct peek_trace_line *duration = peek_duration(shown, item);
	const struct column *column;
	const char *why;

	if (item < shown->peek.count || peek_node(shown, item))
		return true;
	if (duration) {
		column = sample_column_find(shown->peek.traces[duration->trace].kind->so_far);
		if (column_is_there(shown, column, &why))
			return true;
		view_load(view, shown, column->needs, false);
		view_say(view, false, "%s is sampled from now on: peek again", column->name);
	} else if (!is_trace_item(shown, item)) {
		view_load(view, shown, NEED_STACK, false);
		view_say(view, false, "Stacks are sampled from now on");
	} else if (!shown->source.traces) {
		view_load(view, shown, 0, false);
		view->load_traces = true;
		view_say(view, false, "Waits for a CPU, and sleeps are traced from now on");
	}
	return false;
}

/* Keeps the row together with the item under the cursor. */
static void peek_choose(struct view *view, const struct shown *shown, size_t item)
{
	struct text condition = {0}, filter = {0};
	struct question row = view->now;
	bool widens;

	if (!peek_can(view, shown, item))
		return;
	text_into(row.filter, sizeof(row.filter), view->peek);
	peek_condition(&condition, shown, item, true, &widens);
	add_filter(&filter, &row, widens, text_string(&condition));
	if (filter.length < sizeof(row.filter))
		text_into(view_step(view, "%s", text_string(&condition))->filter, VIEW_INPUT_SIZE,
			  text_string(&filter));
	else
		view_say(view, true, "The filter would be longer than %d bytes",
			 EXPRESSION_BYTES_MAX);
	view->row = view->top = 0;
	text_done(&condition);
	text_done(&filter);
}

static void peek_exclude(struct view *view, const struct shown *shown, size_t item)
{
	struct text condition = {0};
	bool widens;

	if (item == SIZE_MAX || !peek_can(view, shown, item))
		return;
	peek_condition(&condition, shown, item, false, &widens);
	if (question_keep(view, widens, text_string(&condition)))
		view->list.kind = NULL;
	text_done(&condition);
}

/* Space leaves the value out of all that is shown; Left and Right fold stacks; p closes. */
static bool peek_key(struct view *view, const struct shown *shown, size_t item, int32_t key)
{
	const struct tree_node *node = peek_node(shown, item);

	switch (key) {
	case 'p':
		if (view->list.words[0]) /* a letter of the word that is being typed */
			return false;
		view->list.kind = NULL;
		return true;
	case ' ':
		peek_exclude(view, shown, item);
		return true;
	case KEY_CODE_LEFT:
	case KEY_CODE_RIGHT:
		if (node)
			folds_set(&view->folds, node->path, key == KEY_CODE_LEFT);
		else if (key == KEY_CODE_LEFT)
			view->list.kind = NULL;
		return true;
	default:
		return false;
	}
}

/* The row's threads in an average scan of the step, in hundredths. */
static int64_t average(const struct shown *shown, size_t step)
{
	const struct peek_band *counts = &shown->peek.band;

	return counts->scans[step] ? ratio(counts->samples[step], 100, counts->scans[step]) : 0;
}

/* Shades for the threads of each step, below the band. */
static void peek_top(struct cells *cells, const struct shown *shown, size_t row)
{
	const struct band *band = &shown->band;
	int64_t most = 0;

	for (size_t i = 0; i < band->count; i++)
		if (average(shown, i) > most)
			most = average(shown, i);
	for (size_t i = 0; i < band->count && band->count <= cells->columns; i++) {
		const char shade[2] = {shade_of(average(shown, i), most), '\0'};

		cells_put(cells, row, cells->columns - band->count + i, 1, shade, STYLE_PLAIN);
	}
	cells_put_cut(cells, row, 0, 7, "in time", STYLE_FAINT);
}

/* Adds the row's keys, and its exact times. */
static void peek_header(const struct view *view, const struct shown *shown, struct text *title)
{
	const struct measures *exact = &shown->peek.exact;
	const struct {
		const char *name;
		int64_t thousandths;
	} times[] = {{"cpu_s", exact->cpu_s},
		     {"runq_s", exact->runq_s},
		     {"dwait_s", exact->dwait_s},
		     {"sleep_s", exact->sleep_s}};

	text_add_format(title, ": %s", view->peek_title);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].thousandths == ABSENT)
			continue;
		text_add_format(title, "; %s ", times[i].name);
		text_add_decimals(title, times[i].thousandths, 3);
	}
}

/* Adds the item's explanation, and for a histogram which samples Enter keeps: its durations are
 * those of whole waits. */
static void peek_detail(const struct view *view, const struct shown *shown, size_t item,
			struct text *text)
{
	const struct peek_trace_line *duration = peek_duration(shown, item);
	struct text name = {0};

	peek_item(view, shown, item, &name, text);
	if (duration) {
		text_add_string(text, ". Kept: samples within such a wait, as long as it was by "
				      "then: ");
		add_duration_condition(text, shown, duration, true);
	}
	text_done(&name);
}

const struct list_kind list_peek = {
	.title = "In this row",
	.hint = "Enter keeps this row and value, Space leaves it out, Left and Right fold, letters "
		"search, p closes",
	.count = peek_count,
	.item = peek_item,
	.choose = peek_choose,
	.half = true,
	.fill = shown_peek,
	.header = peek_header,
	.top = peek_top,
	.detail = peek_detail,
	.key = peek_key,
};
