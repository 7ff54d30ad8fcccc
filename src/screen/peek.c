/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peeking at a row (p): its keys become a filter, and a list shows the samples that pass it,
 * grouped by one column after another, and as a tree of their stacks. */
#include "screen/shown.h"
#include "screen/feed.h"
#include "report/group_split.h"
#include "report/value.h"
#include "render/fold.h"
#include "base/memory.h"
#include "base/text.h"
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- number of threads that the row had in each step of the band. Counting visits all samples of
 * the history, and ten minutes of a busy host are millions of them: counts are kept, and older
 * samples are counted from the newest on, for a part of a second, then with the next answers. */

struct counting {
	struct peek_band *counts;
	size_t steps;
	const struct filter *filter;
	bool remembers; /* the filter reads nothing that changes while a thread goes on */
	size_t step;	/* step that the scan is in; equal to the number of steps: none */
};

static void count_scan(void *to, const struct history_scan *scan)
{
	struct counting *counting = to;
	struct peek_band *counts = counting->counts;
	int64_t step = (scan->time_us - counts->from_us) / counts->step_us;

	counting->step = scan->time_us < counts->from_us || step >= (int64_t)counting->steps
				 ? counting->steps
				 : (size_t)step;
	if (counting->step < counting->steps)
		counts->scans[step] += history_scans(scan);
}

/* Counts a sample. *memo: 1 if the filter refuses it, 2 if it accepts it. */
static void count_sample(void *to, const struct sample *sample, uint64_t *memo)
{
	struct counting *counting = to;

	if (counting->step == counting->steps)
		return;
	if (!*memo || !counting->remembers)
		*memo = filter_accepts(counting->filter, sample) ? 2 : 1;
	if (*memo == 2)
		counting->counts->samples[counting->step] += sample_scans(sample);
}

/* Keeps the counts if the same filter and steps are counted again, moved by the steps that have
 * passed. */
static void counts_move(struct peek_band *counts, const struct shown *shown,
			const struct question *question)
{
	const struct band *band = &shown->band;
	int64_t until_us = shown->history.last_us + 1, steps;

	steps = counts->step_us ? (band->from_us - counts->from_us) / counts->step_us : -1;
	if (counts->step_us != band->step_us || steps < 0 || steps >= BAND_STEPS_MAX ||
	    counts->all_states != question->all_states ||
	    strcmp(counts->filter, question->filter) != 0 ||
	    counts->seen.until_us + SEEN_GAP_US < until_us) {
		*counts = (struct peek_band){.step_us = band->step_us,
					     .all_states = question->all_states};
		text_into(counts->filter, sizeof(counts->filter), question->filter);
		counts->seen = history_seen_none(&shown->history);
		steps = 0;
	}
	memmove(counts->samples, counts->samples + steps,
		(BAND_STEPS_MAX - (size_t)steps) * sizeof(counts->samples[0]));
	memmove(counts->scans, counts->scans + steps,
		(BAND_STEPS_MAX - (size_t)steps) * sizeof(counts->scans[0]));
	memset(counts->samples + BAND_STEPS_MAX - steps, 0,
	       (size_t)steps * sizeof(counts->samples[0]));
	memset(counts->scans + BAND_STEPS_MAX - steps, 0, (size_t)steps * sizeof(counts->scans[0]));
	counts->from_us = band->from_us;
}

static void peek_band_fill(struct peek_band *counts, const struct shown *shown,
			   const struct question *question, const struct filter *filter)
{
	const struct history_view *history = &shown->history;
	struct counting counting = {.counts = counts,
				    .steps = shown->band.count,
				    .filter = filter,
				    .remembers =
					    !expression_reads(&filter->expression, history_varies)};
	struct history_visitor visitor = {
		.scan = count_scan, .to = &counting, .sample_memo = count_sample};

	if (!shown->band.count)
		return;
	counts_move(counts, shown, question);
	history_visit_part(history, &counts->seen, counts->from_us, &visitor);
}

/* --- the list */

#define BUCKET_WIDTH 30 /* greatest length of a bar, in characters */

/* --- the parts */

#define VALUES_MOST 8 /* values shown of a column, at most */

/* Ends of the labels of frames that are not user functions. */
#define STACK_ON "on CPU" /* root of these frames */
#define STACK_KERNEL " [kernel]"
#define STACK_CALL " [system call]"

static const char *const peek_columns[] = {
	"tid",	  "comm",     "state",	    "syscall",	 "filename", "connection",
	"why",	  "waits_on", "waker_comm", "waker_tid", "unit",     "container",
	"ufuncs", "kfuncs",   "io_dev",	    "cpu",
};
#define PEEK_COLUMNS (sizeof(peek_columns) / sizeof(peek_columns[0]))
/* Groups after those of the columns: all samples as one group, and by stack. */
#define GROUPS_ALL PEEK_COLUMNS
#define GROUPS_STACKS (PEEK_COLUMNS + 1)
#define GROUPS_COUNT (PEEK_COLUMNS + 2)
#define STACK_COLUMNS FOLD_COLUMNS ",samples"

struct peeking {
	struct filter filter;
	struct column_list lists[GROUPS_COUNT];
	struct group_table groups[GROUPS_COUNT];
	struct tally tally;
	const struct exact_times *times; /* exact times; NULL: samples count */
	struct peek *peek;		 /* only its traces are filled during the visit */
};

static void peek_scan(void *to, const struct history_scan *scan)
{
	struct peeking *peeking = to;

	tally_add(&peeking->tally,
		  &(struct scan){.time_us = scan->time_us, .weight_us = scan->weight_us});
}

static void peek_sample(void *to, const struct sample *sample)
{
	struct peeking *peeking = to;
	int64_t weight_us = sample->scan.weight_us;

	if (!filter_accepts(&peeking->filter, sample))
		return;
	peeking->tally.samples += sample_scans(sample);
	if (peeking->times) {
		weight_us = exact_sample_us(peeking->times, sample);
		peeking->tally.shared_us = sum(peeking->tally.shared_us, weight_us);
	}
	for (size_t i = 0; i < GROUPS_COUNT; i++)
		group_table_fold(&peeking->groups[i], sample, sample_scans(sample), weight_us);
}

static void peek_account(void *to, const struct sample *account)
{
	struct peeking *peeking = to;

	if (filter_accepts(&peeking->filter, account))
		group_table_add_account(&peeking->groups[GROUPS_ALL], account);
}

/* Needs that are known of a trace's thread, and of its wait: a history does not keep errno. */
static uint64_t trace_known(const struct trace_kind *kind)
{
	return KNOWN_IDS | NEED_COMM | (FEED_TRACE_NEEDS & ~NEED_SYSCALL) |
	       (kind->known & ~KNOWN_EVENT);
}

/* Adds the histogram if the filter accepts its thread. Conditions on what only a sample has refuse
 * nothing: waits for a CPU have no system call. */
static void peek_trace(void *to, const struct trace_kind *kind, const struct sample *who,
		       const struct histogram *histogram)
{
	struct peeking *peeking = to;
	struct peek *peek = peeking->peek;
	size_t at = 0;

	if (filter_eval_thread(&peeking->filter, who, trace_known(kind)) == VERDICT_REFUSED)
		return;
	while (at < peek->trace_count && peek->traces[at].kind != kind)
		at++;
	if (at == PEEK_TRACES_MAX)
		return;
	if (at == peek->trace_count)
		peek->traces[peek->trace_count++] = (struct peek_trace){.kind = kind};
	histogram_merge(&peek->traces[at].histogram, histogram);
}

/* Fills a line for each kind, and one for each bucket from its first event to its last one. */
static void trace_lines_fill(struct peek *peek)
{
	peek->trace_line_count = 0;
	for (size_t trace = 0; trace < peek->trace_count; trace++) {
		const int64_t *buckets = peek->traces[trace].histogram.buckets;
		int first = 0, last = HISTOGRAM_BUCKETS - 1;

		while (first < last && !buckets[first])
			first++;
		while (last > first && !buckets[last])
			last--;
		peek->trace_lines[peek->trace_line_count++] =
			(struct peek_trace_line){trace, PEEK_TRACE_SUM};
		if (peek->traces[trace].kind->measure == TRACE_COUNT)
			continue;
		for (int bucket = first; bucket <= last; bucket++) {
			if (buckets[bucket] > peek->traces[trace].most)
				peek->traces[trace].most = buckets[bucket];
			peek->trace_lines[peek->trace_line_count++] =
				(struct peek_trace_line){trace, bucket};
		}
	}
}

/* Adds lines for the column's values; none if all samples lack the column. */
static void lines_add(struct peek *peek, const struct peeking *peeking, size_t at,
		      struct grid *grid)
{
	const struct column *column = peeking->lists[at].items[0];

	grid_fill_groups(grid, &peeking->groups[at], &peeking->tally);
	if (grid->row_count == 1 && value_is_absent(column, grid_row(grid, 0)[0]))
		return;
	for (size_t row = 0; row < grid->row_count && row < VALUES_MOST; row++) {
		const union value *values = grid_row(grid, row);

		if (peek->count == PEEK_LINES_MAX)
			return;
		peek->lines[peek->count++] =
			(struct peek_line){column, values[0], values[1].number, values[2].number};
	}
}

/* True if the column is one of the table's: the row has just one value of it. */
static bool is_requested(const struct question *question, const struct column *column)
{
	for (size_t i = 0; i < question->list.count; i++)
		if (question->list.items[i] == column)
			return true;
	return false;
}

/* Adds the frames of one part, below a root of that name. */
static void frames_add(struct tree *tree, const struct frame_tree *frames, enum frame_part part,
		       const char *root)
{
	uint32_t *nodes = memory_get((frames->count + 1) * sizeof(*nodes));
	struct text label = {0};

	for (uint32_t at = 0; at < frames->count; at++) {
		const struct frame_node *frame = &frames->nodes[at];

		if (!frame->all[part])
			continue;
		text_clear(&label);
		text_add(&label, frame->name, frame_kind_plain(frame->kind, strlen(frame->name)));
		if (!strcmp(frame->kind->mark, FRAME_KERNEL))
			text_add_string(&label, STACK_KERNEL);
		else if (!strcmp(frame->kind->mark, FRAME_SYSCALL))
			text_add_string(&label, STACK_CALL);
		/* a node comes after its parent */
		nodes[at] = at ? tree_child(tree, nodes[frame->parent],
					    hash_bytes(frame->name, strlen(frame->name)),
					    text_string(&label))
			       : tree_child(tree, 0, part, root);
		tree_add(tree, nodes[at], frame->own[part]);
	}
	text_done(&label);
	free(nodes);
}

/* Fills the tree of stacks, weighed by their samples, on CPU and off it. */
static void stacks_fill(struct peek *peek, const struct peeking *peeking, struct grid *grid)
{
	struct frame_tree frames = {0};
	bool any = false;

	tree_clear(&peek->stacks);
	grid_fill_groups(grid, &peeking->groups[GROUPS_STACKS], &peeking->tally);
	for (size_t row = 0; row < grid->row_count; row++) {
		union value *values = grid->values + row * grid->list->count;

		any |= values[2].text != NULL;
		if (!peeking->times)
			values[3] = values[4]; /* weighed by samples, as all lines here */
	}
	if (any)
		fold_interval(&frames, &(struct interval){.grid = grid}, NULL);
	frames_add(&peek->stacks, &frames, PART_ON, STACK_ON);
	frames_add(&peek->stacks, &frames, PART_OFF, "off CPU");
	frame_tree_done(&frames);
}

static void lists_make(struct peeking *peeking)
{
	struct error e = {0};

	for (size_t i = 0; i < GROUPS_COUNT; i++) {
		struct column_list *list = &peeking->lists[i];

		if (i < PEEK_COLUMNS)
			column_list_add(list, peek_columns[i], true, &e);
		column_list_add(list,
				i < PEEK_COLUMNS  ? "avg_thr,share"
				: i == GROUPS_ALL ? "cpu_s,runq_s"
						  : STACK_COLUMNS,
				true, &e);
		group_table_init(&peeking->groups[i], list);
	}
	error_done(&e);
}

static void exact_fill(struct peek *peek, const struct group_table *all)
{
	const union value *sums = all->count ? group_sums(all, group_at(all, 0)) : NULL;

	peek->exact = measures_of(peek->tally.samples, 0, sums, &peek->tally);
	if (!sums)
		peek->exact.cpu_s = peek->exact.runq_s = peek->exact.dwait_s = peek->exact.sleep_s =
			ABSENT;
}

static void peek_fill(struct peek *peek, const struct shown *shown, const struct question *question)
{
	struct peeking *peeking = memory_get(sizeof(*peeking));
	struct history_visitor visitor = {.scan = peek_scan,
					  .sample = peek_sample,
					  .account = peek_account,
					  .trace = peek_trace,
					  .to = peeking};
	struct error e = {0};
	struct grid grid = {0};

	peeking->times = shown->tally.shared_us ? &shown->times : NULL;
	peeking->peek = peek;
	peek->trace_count = 0;
	lists_make(peeking);
	if (!question_filter(question, &peeking->filter, &e)) {
		history_visit(&shown->history, shown->from_us, shown->until_us, &visitor);
		peek_band_fill(&peek->band, shown, question, &peeking->filter);
	}
	error_done(&e);
	peek->count = 0;
	peek->tally = peeking->tally;
	for (size_t i = 0; i < PEEK_COLUMNS; i++)
		if (!is_requested(question, peeking->lists[i].items[0]))
			lines_add(peek, peeking, i, &grid);
	exact_fill(peek, &peeking->groups[GROUPS_ALL]);
	trace_lines_fill(peek);
	stacks_fill(peek, peeking, &grid);
	grid_done(&grid);
	filter_done(&peeking->filter);
	for (size_t i = 0; i < GROUPS_COUNT; i++)
		group_table_done(&peeking->groups[i]);
	free(peeking);
}

void shown_peek(struct shown *shown, const struct view *view)
{
	struct peek *peek = &shown->peek;
	struct question question;

	if (peek->answer != shown->answer || strcmp(peek->filter, view->peek) != 0) {
		question = view->now;
		text_into(question.filter, sizeof(question.filter), view->peek);
		text_into(peek->filter, sizeof(peek->filter), view->peek);
		peek->answer = shown->answer;
		peek_fill(peek, shown, &question);
	}
	tree_order(&peek->stacks, &view->folds);
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
	return shown->peek.count + trace_items(shown) +
	       (stacks_are_sampled(shown) ? shown->peek.stacks.row_count : 1);
}

/* Adds a bound of a bucket. */
static void add_bound(struct text *text, const struct trace_kind *kind, int64_t ns)
{
	struct text bound = {0};

	if (kind->measure == TRACE_AMOUNT)
		text_add_number(&bound, ns >> HISTOGRAM_AMOUNT_SHIFT);
	else
		text_add_duration(&bound, ns);
	text_add_spaces(text, bound.length < 8 ? 8 - bound.length : 0);
	text_add(text, text_string(&bound), bound.length);
	text_done(&bound);
}

/* "1.02 ms ..  2.05 ms      120  ##########" */
static void add_bucket(struct text *help, const struct peek_trace *trace, int bucket)
{
	int64_t count = trace->histogram.buckets[bucket];
	struct text number = {0};

	add_bound(help, trace->kind, histogram_low_ns(bucket));
	text_add_string(help, bucket == HISTOGRAM_BUCKETS - 1 ? " on " : " .. ");
	if (bucket == HISTOGRAM_BUCKETS - 1)
		text_add_spaces(help, 8);
	else
		add_bound(help, trace->kind, histogram_high_ns(bucket));
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

/* Adds ", p50 1.02 ms, p90 ..."; nothing of what is only counted. */
static void add_quantiles(struct text *help, const struct trace_kind *kind,
			  const struct histogram *histogram)
{
	const bool amounts = kind->measure == TRACE_AMOUNT;
	int64_t (*quantile)(const struct histogram *, int) =
		amounts ? histogram_quantile_amount : histogram_quantile_ns;
	const struct {
		const char *name;
		int64_t value;
	} reported[] = {{"p50", quantile(histogram, 500)},
			{"p90", quantile(histogram, 900)},
			{"p99", quantile(histogram, 990)},
			{"max", histogram->max_ns},
			{"total", histogram->sum_ns}};

	if (kind->measure == TRACE_COUNT)
		return;
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		text_add_format(help, ", %s ", reported[i].name);
		if (amounts)
			text_add_number(help, reported[i].value);
		else
			text_add_duration(help, reported[i].value);
	}
}

static void trace_item(const struct shown *shown, size_t line, struct text *name, struct text *help)
{
	const struct peek_trace_line *of = &shown->peek.trace_lines[line];
	const struct peek_trace *trace = &shown->peek.traces[of->trace];
	const struct histogram *histogram = &trace->histogram;

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
	add_quantiles(help, trace->kind, histogram);
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

/* Adds the frame as a part of a regular expression; a character that would need a backslash is
 * matched by any character. In a stack the kind of a frame follows its name: "read_[k]". */
static void add_frame(struct text *text, const char *label)
{
	size_t length = strlen(label);

	if (text_ends(label, STACK_KERNEL))
		length -= strlen(STACK_KERNEL);
	for (; length--; label++) {
		if (strchr("[](){}*+?.$|", *label))
			text_add_format(text, *label == ']' ? "[]]" : "[%c]", *label);
		else
			text_add_char(text, strchr("\\^\"", *label) ? '.' : *label);
	}
	text_add_string(text, "(_[[].])?");
}

/* Adds the frames from below the root, which is not a frame, down to the node; system calls are not
 * in stacks. */
static void add_frames(struct text *text, const struct tree *tree, const struct tree_node *node)
{
	const char *label = tree->labels.bytes + node->label;

	if (!node->parent)
		return;
	add_frames(text, tree, &tree->nodes[node->parent]);
	if (text_ends(label, STACK_CALL))
		return;
	text_add_string(text, text->length ? ";" : "");
	add_frame(text, label);
}

/* Adds the condition that a stack begins with the frames from the root to the node, on CPU or off
 * it. Returns whether that widens, as condition_widens() does. */
static bool add_stack_condition(struct text *text, const struct tree *tree,
				const struct tree_node *node, bool wanted)
{
	const struct tree_node *root = node;
	struct text frames = {0};
	bool on;

	while (root->parent)
		root = &tree->nodes[root->parent];
	on = !strcmp(tree->labels.bytes + root->label, STACK_ON);
	text_add_format(text, "%s(%sstate=ON", wanted ? "" : "!", on ? "" : "!");
	add_frames(&frames, tree, node);
	if (frames.length)
		text_add_format(text, " && stack~\"^%s(;|$)\"", text_string(&frames));
	text_add_char(text, ')');
	text_done(&frames);
	return !wanted || !on;
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
	if (duration && !shown->peek.traces[duration->trace].kind->samples) {
		view_say(view, false,
			 "Samples don't show what a probe measured: they can't be "
			 "chosen by it");
	} else if (duration) {
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
	struct text condition = {0};
	bool widens;

	if (!peek_can(view, shown, item))
		return;
	peek_condition(&condition, shown, item, true, &widens);
	question_keep(view, view->peek, widens, text_string(&condition));
	view->row = view->top = 0;
	text_done(&condition);
}

static void peek_exclude(struct view *view, const struct shown *shown, size_t item)
{
	struct text condition = {0};
	bool widens;

	if (item == SIZE_MAX || !peek_can(view, shown, item))
		return;
	peek_condition(&condition, shown, item, false, &widens);
	if (question_keep(view, view->now.filter, widens, text_string(&condition)))
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
	if (duration && shown->peek.traces[duration->trace].kind->samples) {
		text_add_string(text, ". Kept: samples within such a wait, as long as it was by "
				      "then: ");
		add_duration_condition(text, shown, duration, true);
	}
	text_done(&name);
}

static const struct list_kind list_peek = {
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

void command_peek(struct view *view, const struct shown *shown, int64_t by)
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
