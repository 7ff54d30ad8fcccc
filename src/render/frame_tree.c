/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/frame_tree.h"
#include "report/value.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

static uint32_t node_new(struct frame_tree *tree, uint32_t parent, const char *name)
{
	struct frame_node *node;

	tree->nodes =
		memory_grow(tree->nodes, &tree->capacity, tree->count + 1, sizeof(*tree->nodes));
	node = &tree->nodes[tree->count];
	*node = (struct frame_node){
		.name = name,
		.kind = frame_kind_of(name, strlen(name)),
		.parent = parent,
		.depth = tree->count ? tree->nodes[parent].depth + 1 : 0,
	};
	return (uint32_t)tree->count++;
}

/* The parent's child of that name, made if the tree has fewer than `most` nodes; 0: there are too
 * many. */
static uint32_t node_child(struct frame_tree *tree, uint32_t parent, const char *name,
			   size_t length, size_t most)
{
	const char *one = name_transient(name, length);
	bool added;
	uint64_t *number = index_put(&tree->names, (uintptr_t)one, &added), key, *child;

	if (added)
		*number = tree->names.used;
	key = (uint64_t)parent << 32 | *number;
	child = index_find(&tree->children, key);
	if (child)
		return (uint32_t)*child;
	if (tree->count >= most)
		return 0;
	child = index_put(&tree->children, key, NULL);
	*child = node_new(tree, parent, one);
	return (uint32_t)*child;
}

void frame_tree_add(struct frame_tree *tree, const char *frames, enum frame_part part,
		    int64_t weight)
{
	uint32_t at = 0, child;

	if (!tree->count)
		node_new(tree, 0, "all" FRAME_ROOT);
	while (*frames) {
		size_t length = strcspn(frames, ";");

		if (length && tree->nodes[at].depth + 1 == FRAME_DEPTH_MAX) {
			frames = FRAMES_DEEPER;
			length = strlen(frames);
		}
		child = length ? node_child(tree, at, frames, length, FRAMES_MAX) : at;
		if (length && !child) {
			at = node_child(tree, 0, FRAMES_FULL, strlen(FRAMES_FULL), FRAMES_MAX + 2);
			break;
		}
		at = child;
		frames += length + (frames[length] == ';');
	}
	if (!at)
		at = node_child(tree, 0, FRAMES_NONE, strlen(FRAMES_NONE), FRAMES_MAX + 2);
	tree->nodes[at].own[part] = sum(tree->nodes[at].own[part], weight);
	for (;; at = tree->nodes[at].parent) {
		tree->nodes[at].all[part] = sum(tree->nodes[at].all[part], weight);
		if (!at)
			break;
	}
}

static int name_compare(const void *a, const void *b, void *from)
{
	const struct frame_tree *tree = from;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return strcmp(tree->nodes[x].name, tree->nodes[y].name);
}

void frame_tree_sort(struct frame_tree *tree)
{
	uint32_t *order = memory_get(tree->count * sizeof(*order));

	for (uint32_t i = 0; i < tree->count; i++) {
		order[i] = i;
		tree->nodes[i].child = tree->nodes[i].sibling = 0;
	}
	if (tree->count > 1)
		qsort_r(order + 1, tree->count - 1, sizeof(*order), name_compare, tree);
	/* nodes from the last name to the first: each is put before its siblings */
	for (size_t i = tree->count; i-- > 1;) {
		struct frame_node *node = &tree->nodes[order[i]];

		node->sibling = tree->nodes[node->parent].child;
		tree->nodes[node->parent].child = order[i];
	}
	free(order);
}

uint32_t frame_tree_next(const struct frame_tree *tree, uint32_t at, bool past)
{
	if (tree->nodes[at].child && !past)
		return tree->nodes[at].child;
	while (at && !tree->nodes[at].sibling)
		at = tree->nodes[at].parent;
	return tree->nodes[at].sibling;
}

void frame_tree_done(struct frame_tree *tree)
{
	index_clear(&tree->names);
	index_clear(&tree->children);
	free(tree->nodes);
	*tree = (struct frame_tree){0};
}
