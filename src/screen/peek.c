/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a row: the row's samples once more, grouped by one column after another, and as a tree
 * of their stacks. */
#include "screen/shown.h"
#include "screen/feed.h"
#include "report/group_split.h"
#include "report/value.h"
#include "render/fold.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_MOST 8 /* values shown of a column, at most */

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
	peeking->tally.samples++;
	if (peeking->times) {
		weight_us = exact_sample_us(peeking->times, sample);
		peeking->tally.shared_us = sum(peeking->tally.shared_us, weight_us);
	}
	for (size_t i = 0; i < GROUPS_COUNT; i++)
		group_table_fold(&peeking->groups[i], sample, 1, weight_us);
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
		fold_interval(&frames, &(struct interval){.grid = grid});
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
