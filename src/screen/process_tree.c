/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of processes (T): the window's samples, processes below their parents, or threads below
 * processes, systemd units and containers. */
#include "screen/shown.h"
#include "base/index.h"
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

/* Keys of a group, in the order of its columns. */
enum level {
	LEVEL_CONTAINER,
	LEVEL_UNIT,
	LEVEL_PID,
	LEVEL_TID,
	LEVEL_COMM,
	LEVEL_PPID,
	LEVEL_PARENT,
	LEVELS
};
#define LEVEL_COLUMNS "container,unit,pid,tid,comm,ppid,parent_comm"

/* What the window's groups say of their processes. */
struct processes {
	const struct group_table *groups;
	struct index names;    /* pid to the group of its main thread, or its first one */
	struct index parents;  /* ppid to a group whose parent it is */
	struct index threaded; /* processes of which other threads than the main one were seen */
};

static void processes_find(struct processes *processes, const struct group_table *groups)
{
	*processes = (struct processes){.groups = groups};
	for (size_t i = 0; i < groups->count; i++) {
		const union value *group = group_at(groups, i);
		bool added, is_main = group[LEVEL_PID].number == group[LEVEL_TID].number;
		uint64_t *at =
			index_put(&processes->names, (uint64_t)group[LEVEL_PID].number, &added);

		if (added || is_main)
			*at = i;
		if (!is_main)
			index_put(&processes->threaded, (uint64_t)group[LEVEL_PID].number, NULL);
		if (group[LEVEL_PARENT].text)
			*index_put(&processes->parents, (uint64_t)group[LEVEL_PPID].number, NULL) =
				i;
	}
}

static void processes_done(struct processes *processes)
{
	index_clear(&processes->names);
	index_clear(&processes->parents);
	index_clear(&processes->threaded);
}

static void label_process(struct text *label, struct processes *processes, union value pid)
{
	const uint64_t *at = index_find(&processes->names, (uint64_t)pid.number),
		       *child = index_find(&processes->parents, (uint64_t)pid.number);
	const char *comm = at	   ? group_at(processes->groups, *at)[LEVEL_COMM].text
			   : child ? group_at(processes->groups, *child)[LEVEL_PARENT].text
				   : NULL;

	text_clear(label);
	if (pid.number == ABSENT)
		text_add_string(label, "no process id");
	else
		text_add_format(label, "%lld %s", (long long)pid.number,
				comm ? comm : "(not in this window)");
}

static void label_make(struct text *label, enum level level, union value value, const char *comm)
{
	text_clear(label);
	if (level == LEVEL_TID)
		text_add_format(label, "%lld %s", (long long)value.number, comm ? comm : "-");
	else
		text_add_format(label, "%s %s", level == LEVEL_CONTAINER ? "container" : "unit",
				value.text ? value.text : "-");
}

static uint32_t node_of(struct tree *tree, const struct shown *shown, uint32_t parent,
			enum level level, union value value, const struct text *label)
{
	uint64_t key = level <= LEVEL_UNIT
			       ? value.text ? hash_bytes(value.text, strlen(value.text)) : 0
			       : hash_u64((uint64_t)value.number);
	uint32_t node = tree_child(tree, parent, key + level, text_string(label));

	if (node != parent) {
		tree->nodes[node].column = shown->groups.keys[level];
		tree->nodes[node].value = value;
	}
	return node;
}

/* Weight of the group in the tree; 0: none, as its process is not known. */
static int64_t group_in_tree(const struct shown *by, const union value *group)
{
	int64_t samples = group_samples(&by->groups, group);

	if (!samples && group[LEVEL_PID].number == ABSENT)
		return 0;
	return by->tally.shared_us ? group_weight_us(&by->groups, group) : samples;
}

static void units_add(struct tree *tree, const struct shown *shown, struct processes *processes)
{
	const struct group_table *groups = &shown->groups;
	struct text label = {0};

	for (size_t i = 0; i < groups->count; i++) {
		const union value *group = group_at(groups, i);
		enum level last;
		uint32_t node = 0;

		if (!group_in_tree(shown, group))
			continue;
		/* the main thread, where no other was seen, is its process */
		last = index_find(&processes->threaded, (uint64_t)group[LEVEL_PID].number)
			       ? LEVEL_TID
			       : LEVEL_PID;
		for (enum level level = LEVEL_CONTAINER; level <= last; level++) {
			if (level == LEVEL_PID)
				label_process(&label, processes, group[level]);
			else
				label_make(&label, level, group[level], group[LEVEL_COMM].text);
			node = node_of(tree, shown, node, level, group[level], &label);
		}
		tree_add(tree, node, group_in_tree(shown, group));
	}
	text_done(&label);
}

static bool is_above(const struct tree *tree, uint32_t above, uint32_t node)
{
	while (node && node != above)
		node = tree->nodes[node].parent;
	return node == above;
}

/* Adds processes as roots, then moves each below its parent, then adds their samples. */
static void parents_add(struct tree *tree, const struct shown *shown, struct processes *processes)
{
	const struct group_table *groups = &shown->groups;
	struct text label = {0};

	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < groups->count; i++) {
			const union value *group = group_at(groups, i);
			union value ppid = group[LEVEL_PPID];
			uint32_t node, parent;

			if (!group_in_tree(shown, group))
				continue;
			label_process(&label, processes, group[LEVEL_PID]);
			node = node_of(tree, shown, 0, LEVEL_PID, group[LEVEL_PID], &label);
			if (pass == 2)
				tree_add(tree, node, group_in_tree(shown, group));
			if (pass != 1 || !node || tree->nodes[node].parent ||
			    ppid.number == ABSENT || !ppid.number)
				continue;
			label_process(&label, processes, ppid);
			parent = node_of(tree, shown, 0, LEVEL_PID, ppid, &label);
			/* ids are reused: a parent may seem to be below its child */
			if (parent && !is_above(tree, node, parent))
				tree_move(tree, node, parent);
		}
	text_done(&label);
}

static void tree_fill(struct shown *shown, const struct view *view)
{
	struct question question = view->now;
	struct shown by = {.history = shown->history, .source = shown->source};
	struct processes processes;
	struct error e = {0};

	column_list_add(&by.list, LEVEL_COLUMNS, true, &e);
	error_done(&e);
	window_group(&by, &question, shown->until_us, &by.groups, &by.times, &by.tally);
	processes_find(&processes, &by.groups);
	tree_clear(&shown->tree);
	if (view->tree_of_parents)
		parents_add(&shown->tree, &by, &processes);
	else
		units_add(&shown->tree, &by, &processes);
	processes_done(&processes);
	group_table_done(&by.groups);
	exact_times_done(&by.times);
}

/* Fills the tree, if that was not done yet. */
static void shown_tree(struct shown *shown, const struct view *view)
{
	if (shown->tree_answer != shown->answer ||
	    shown->tree_of_parents != view->tree_of_parents) {
		shown->tree_answer = shown->answer;
		shown->tree_of_parents = view->tree_of_parents;
		tree_fill(shown, view);
	}
	tree_order(&shown->tree, &view->folds);
}

#define PROCESSES_MOST 100 /* processes that one filter names */

/* Adds a condition for each process of the subtree with the node at its top. False: too many. */
static bool add_processes(struct text *text, const struct tree *tree, const struct tree_node *node,
			  size_t *count)
{
	const struct tree_node *child;

	if (++*count > PROCESSES_MOST)
		return false;
	text_add_string(text, *count > 1 ? "||" : "");
	add_condition(text, node->column, node->value, true);
	for (uint32_t at = node->child; at; at = child->sibling) {
		child = &tree->nodes[at];
		if (!add_processes(text, tree, child, count))
			return false;
	}
	return true;
}

/* Adds the condition for the node, with those of nodes above it where its own value is not
 * enough. */
static bool add_node(struct text *text, const struct view *view, const struct tree *tree,
		     const struct tree_node *node, bool wanted)
{
	size_t count = 0;

	if (!wanted)
		text_add_char(text, '!');
	text_add_char(text, '(');
	if (view->tree_of_parents && !add_processes(text, tree, node, &count))
		return false;
	for (; !view->tree_of_parents; node = &tree->nodes[node->parent]) {
		add_condition(text, node->column, node->value, true);
		if (!node->parent || !column_is_text(node->column))
			break;
		text_add_string(text, " && ");
	}
	text_add_char(text, ')');
	return true;
}

static size_t tree_count(const struct view *view, const struct shown *shown)
{
	return shown->tree.row_count;
}

static void tree_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	const struct tree_node *node = tree_row(&shown->tree, item);
	int64_t average = tally_avg_thr(&shown->tally, node->weight);

	text_add_format(name, "%*s", average < 1000 ? 3 : average < 10000 ? 2 : 0, "");
	text_add_decimals(name, average, 2);
	text_add_spaces(name, name->length < 9 ? 9 - name->length : 1);
	text_add_decimals(name, tally_share(&shown->tally, node->weight), 1);
	text_add_char(name, '%');
	tree_add_label(help, &shown->tree, node);
}

static void node_eval(struct view *view, const struct shown *shown, size_t item, bool wanted)
{
	struct text condition = {0};

	if (!add_node(&condition, view, &shown->tree, tree_row(&shown->tree, item), wanted)) {
		view_say(view, true,
			 "More than %d processes are below it: Left folds, Down goes on",
			 PROCESSES_MOST);
	} else if (question_keep(view, view->now.filter, false, text_string(&condition))) {
		view->row = view->top = 0;
		view->list.kind = NULL;
	}
	text_done(&condition);
}

static void tree_choose(struct view *view, const struct shown *shown, size_t item)
{
	node_eval(view, shown, item, true);
}

static void tree_mode(struct view *view, const struct shown *shown)
{
	if (!view->tree_of_parents && NEED_PPID & ~shown->source.needs) {
		view_load(view, shown, NEED_PPID, false);
		view_say(view, false, "Parents are sampled from now on");
	}
	view->tree_of_parents = !view->tree_of_parents;
	view->list.at = view->list.top = 0;
}

/* Key T shows the other tree; Left and Right fold; Space leaves out. */
static bool tree_key(struct view *view, const struct shown *shown, size_t item, int32_t key)
{
	switch (key) {
	case 'T':
		tree_mode(view, shown);
		return true;
	case KEY_CODE_LEFT:
	case KEY_CODE_RIGHT:
		if (item != SIZE_MAX)
			folds_set(&view->folds, tree_row(&shown->tree, item)->path,
				  key == KEY_CODE_LEFT);
		return true;
	case ' ':
		if (item != SIZE_MAX)
			node_eval(view, shown, item, false);
		return true;
	default:
		return false;
	}
}

static void tree_header(const struct view *view, const struct shown *shown, struct text *title)
{
	text_add_string(title, view->tree_of_parents
				       ? " of processes by parent: avg_thr, share with all below"
				       : " by container, unit, process, thread: avg_thr, share");
}

/* Adds the condition that Enter keeps. */
static void tree_detail(const struct view *view, const struct shown *shown, size_t item,
			struct text *text)
{
	if (!add_node(text, view, &shown->tree, tree_row(&shown->tree, item), true))
		text_add_string(text, " ...");
}

static const struct list_kind list_tree = {
	.title = "Tree",
	.hint = "Left and Right fold, Enter keeps, Space excludes, T: the other tree, / searches, "
		"Esc closes",
	.keys = true,
	.count = tree_count,
	.item = tree_item,
	.choose = tree_choose,
	.stays = true,
	.fill = shown_tree,
	.header = tree_header,
	.detail = tree_detail,
	.key = tree_key,
};

void command_tree(struct view *view, const struct shown *shown, int64_t by)
{
	if (view->tree_of_parents && NEED_PPID & ~shown->source.needs)
		view->tree_of_parents = false;
	list_open(view, &list_tree);
}
