/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The window's samples as a tree: processes below their parents, or threads below processes,
 * systemd units and containers.
 */
#include "screen/shown.h"
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

/* Keys of a group, in the order of its columns. */
enum level { LEVEL_CONTAINER, LEVEL_UNIT, LEVEL_PID, LEVEL_TID, LEVEL_COMM, LEVEL_PPID, LEVELS };
#define LEVEL_COLUMNS "container,unit,pid,tid,comm,ppid"

/* Finds the group that names each process: that of its main thread, or its first one. */
static void names_find(struct index *names, const struct group_table *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		const union value *group = group_at(groups, i);
		bool added;
		uint64_t *at = index_put(names, (uint64_t)group[LEVEL_PID].number, &added);

		if (added || group[LEVEL_PID].number == group[LEVEL_TID].number)
			*at = i;
	}
}

static void label_process(struct text *label, const struct group_table *groups, struct index *names,
			  union value pid)
{
	const uint64_t *at = index_find(names, (uint64_t)pid.number);
	const char *comm = at ? group_at(groups, *at)[LEVEL_COMM].text : NULL;

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

static void units_add(struct tree *tree, const struct shown *shown, struct index *names)
{
	const struct group_table *groups = &shown->groups;
	struct text label = {0};

	for (size_t i = 0; i < groups->count; i++) {
		const union value *group = group_at(groups, i);
		uint32_t node = 0;

		if (!group_in_tree(shown, group))
			continue;
		for (enum level level = LEVEL_CONTAINER; level <= LEVEL_TID; level++) {
			if (level == LEVEL_PID)
				label_process(&label, groups, names, group[level]);
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
static void parents_add(struct tree *tree, const struct shown *shown, struct index *names)
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
			label_process(&label, groups, names, group[LEVEL_PID]);
			node = node_of(tree, shown, 0, LEVEL_PID, group[LEVEL_PID], &label);
			if (pass == 2)
				tree_add(tree, node, group_in_tree(shown, group));
			if (pass != 1 || !node || tree->nodes[node].parent ||
			    ppid.number == ABSENT || !ppid.number)
				continue;
			label_process(&label, groups, names, ppid);
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
	struct index names = {0};
	struct error e = {0};

	column_list_add(&by.list, LEVEL_COLUMNS, true, &e);
	error_done(&e);
	window_group(&by, &question, shown->until_us, &by.groups, &by.times, &by.tally);
	names_find(&names, &by.groups);
	tree_clear(&shown->tree);
	if (view->tree_of_parents)
		parents_add(&shown->tree, &by, &names);
	else
		units_add(&shown->tree, &by, &names);
	index_clear(&names);
	group_table_done(&by.groups);
	exact_times_done(&by.times);
}

void shown_tree(struct shown *shown, const struct view *view)
{
	if (shown->tree_answer != shown->answer ||
	    shown->tree_of_parents != view->tree_of_parents) {
		shown->tree_answer = shown->answer;
		shown->tree_of_parents = view->tree_of_parents;
		tree_fill(shown, view);
	}
	tree_order(&shown->tree, &view->folds);
}
