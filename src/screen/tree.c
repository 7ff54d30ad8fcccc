/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/tree.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void tree_clear(struct tree *tree)
{
	tree->count = tree->row_count = 0;
	index_clear(&tree->by_path);
	text_clear(&tree->labels);
}

static uint32_t node_new(struct tree *tree, uint32_t parent, uint64_t path, const char *label)
{
	struct tree_node *node;

	tree->nodes =
		memory_grow(tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes));
	node = &tree->nodes[tree->count];
	*node = (struct tree_node){.label = tree->labels.length, .path = path, .parent = parent};
	text_add(&tree->labels, label, strlen(label) + 1); /* label with its NUL */
	return (uint32_t)tree->count++;
}

uint32_t tree_child(struct tree *tree, uint32_t parent, uint64_t key, const char *label)
{
	uint64_t path, *at;
	bool added;

	if (!tree->count)
		node_new(tree, 0, 0, "");
	path = hash_u64(tree->nodes[parent].path + 1) ^ hash_u64(key);
	at = index_find(&tree->by_path, path);
	if (at)
		return (uint32_t)*at;
	if (tree->count == TREE_NODES_MAX)
		return parent;
	at = index_put(&tree->by_path, path, &added);
	*at = tree->count;
	return node_new(tree, parent, path, label);
}

void tree_move(struct tree *tree, uint32_t node, uint32_t parent)
{
	tree->nodes[node].parent = parent;
}

void tree_add(struct tree *tree, uint32_t node, int64_t weight)
{
	if (!tree->count)
		return;
	for (;; node = tree->nodes[node].parent) {
		tree->nodes[node].weight += weight;
		if (!node)
			return;
	}
}

static const char *label_of(const struct tree *tree, const struct tree_node *node)
{
	return tree->labels.bytes + node->label;
}

static int node_compare(const void *a, const void *b, void *from)
{
	const struct tree *tree = from;
	const struct tree_node *x = &tree->nodes[*(const uint32_t *)a];
	const struct tree_node *y = &tree->nodes[*(const uint32_t *)b];
	int64_t more = y->weight - x->weight;

	if (!more)
		more = strcmp(label_of(tree, x), label_of(tree, y));
	return more ? (more > 0) - (more < 0) : (x > y) - (x < y);
}

static bool is_folded(const struct folds *folds, uint64_t path)
{
	for (size_t i = 0; i < folds->count; i++)
		if (folds->paths[i] == path)
			return true;
	return false;
}

/* The node of the next row; 0: none. */
static uint32_t row_after(const struct tree *tree, uint32_t at)
{
	if (tree->nodes[at].child && !tree->nodes[at].folded)
		return tree->nodes[at].child;
	while (at && !tree->nodes[at].sibling)
		at = tree->nodes[at].parent;
	return at ? tree->nodes[at].sibling : 0;
}

void tree_order(struct tree *tree, const struct folds *folds)
{
	uint32_t *order = memory_get((tree->count + 1) * sizeof(*order));

	tree->row_count = 0;
	for (uint32_t i = 0; i < tree->count; i++) {
		order[i] = i;
		tree->nodes[i].child = tree->nodes[i].sibling = 0;
		tree->nodes[i].folded = is_folded(folds, tree->nodes[i].path);
	}
	if (tree->count > 1)
		qsort_r(order + 1, tree->count - 1, sizeof(*order), node_compare, tree);
	/* visits siblings from the lightest on, so that each becomes the first child */
	for (size_t i = tree->count; i-- > 1;) {
		struct tree_node *node = &tree->nodes[order[i]];

		node->sibling = tree->nodes[node->parent].child;
		tree->nodes[node->parent].child = order[i];
	}
	free(order);
	tree->rows =
		memory_grow(tree->rows, &tree->row_capacity, tree->count + 1, sizeof(*tree->rows));
	for (uint32_t at = 0; tree->count && (at = row_after(tree, at));) {
		tree->nodes[at].depth = tree->nodes[tree->nodes[at].parent].depth + 1;
		tree->rows[tree->row_count++] = at;
	}
}

const struct tree_node *tree_row(const struct tree *tree, size_t row)
{
	return &tree->nodes[tree->rows[row]];
}

void tree_add_label(struct text *text, const struct tree *tree, const struct tree_node *node)
{
	text_add_spaces(text, ((size_t)node->depth - 1) * 2);
	text_add_string(text, !node->child ? "  " : node->folded ? "▸ " : "▾ ");
	text_add_printable(text, label_of(tree, node));
}

void tree_done(struct tree *tree)
{
	index_clear(&tree->by_path);
	text_done(&tree->labels);
	free(tree->nodes);
	free(tree->rows);
	*tree = (struct tree){0};
}

void folds_set(struct folds *folds, uint64_t path, bool folded)
{
	size_t at = 0;

	while (at < folds->count && folds->paths[at] != path)
		at++;
	if (folded == (at < folds->count))
		return;
	if (!folded) {
		folds->paths[at] = folds->paths[--folds->count];
		return;
	}
	if (folds->count == VIEW_FOLDS_MAX) /* drops the oldest entry, whose node unfolds */
		memmove(folds->paths, folds->paths + 1, --folds->count * sizeof(folds->paths[0]));
	folds->paths[folds->count++] = path;
}
