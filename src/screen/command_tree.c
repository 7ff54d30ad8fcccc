/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of processes (T), and the conditions that nodes of all trees stand for. */
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "report/value.h"

#include <string.h>

#define PROCESSES_MOST 100 /* processes that one filter names */

void command_tree(struct view *view, const struct shown *shown)
{
	if (view->tree_of_parents && NEED_PPID & ~shown->source.needs)
		view->tree_of_parents = false;
	list_open(view, &list_tree);
}

static bool ends_with(const char *label, const char *end)
{
	size_t length = strlen(label), behind = strlen(end);

	return length >= behind && !strcmp(label + length - behind, end);
}

/* Adds the frame as a part of a regular expression; a character that would need a backslash is
 * matched by any character. In a stack the kind of a frame follows its name: "read_[k]". */
static void add_frame(struct text *text, const char *label)
{
	size_t length = strlen(label);

	if (ends_with(label, STACK_KERNEL))
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
	if (ends_with(label, STACK_CALL))
		return;
	text_add_string(text, text->length ? ";" : "");
	add_frame(text, label);
}

bool add_stack_condition(struct text *text, const struct tree *tree, const struct tree_node *node,
			 bool wanted)
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
	(void)view;
	return shown->tree.row_count;
}

static void tree_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	const struct tree_node *node = tree_row(&shown->tree, item);
	int64_t average = tally_avg_thr(&shown->tally, node->weight);

	(void)view;
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
	} else if (question_keep(view, false, text_string(&condition))) {
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
	(void)shown;
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

const struct list_kind list_tree = {
	.title = "Tree",
	.hint = "Left and Right fold, Enter keeps, Space excludes, T: the other tree, letters "
		"search, Esc closes",
	.count = tree_count,
	.item = tree_item,
	.choose = tree_choose,
	.stays = true,
	.fill = shown_tree,
	.header = tree_header,
	.detail = tree_detail,
	.key = tree_key,
};
