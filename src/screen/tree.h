/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tree of samples that folds: threads below their processes, frames below their callers. It is
 * filled anew for each answer; the view has the folded nodes, by hashes of their paths. */
#ifndef TSNAP_SCREEN_TREE_H
#define TSNAP_SCREEN_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"
#include "sample/column.h"
#include "screen/view.h"

#define TREE_NODES_MAX 65536

struct tree_node {
	size_t label;	  /* offset in tree.labels */
	uint64_t path;	  /* hash of the keys from the root to this node */
	uint32_t parent;  /* parent node; 0: a root */
	uint32_t child;	  /* first child in order, 0: none; filled by tree_order() */
	uint32_t sibling; /* next sibling in order */
	uint32_t depth;	  /* 1 for a root */
	int64_t weight;	  /* weight, with that of all nodes below */
	bool folded;
	const struct column *column; /* column of the condition that keeps the node; NULL: none */
	union value value;
};

/* A zeroed struct is an empty tree. */
struct tree {
	struct tree_node *nodes; /* the first one is the parent of all roots, not shown */
	size_t count, capacity;
	struct index by_path; /* hash of the path to node */
	struct text labels;
	uint32_t *rows; /* nodes that are shown, in order */
	size_t row_count, row_capacity;
};

void tree_clear(struct tree *tree);
/* The parent's child with that key, added with that label if there is none; the parent itself if
 * the tree is full. parent: 0 for a root. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint64_t key, const char *label);
/* Moves the node below another parent. Neither may be above the other. */
void tree_move(struct tree *tree, uint32_t node, uint32_t parent);
/* Adds weight to the node and all nodes above it. */
void tree_add(struct tree *tree, uint32_t node, int64_t weight);
/* Orders siblings, heaviest first, and finds the rows that are shown. */
void tree_order(struct tree *tree, const struct folds *folds);
const struct tree_node *tree_row(const struct tree *tree, size_t row);
/* Adds the label of the node, indented, with a sign if it is folded. */
void tree_add_label(struct text *text, const struct tree *tree, const struct tree_node *node);
void tree_done(struct tree *tree);

/* Folds the node, or unfolds it. */
void folds_set(struct folds *folds, uint64_t path, bool folded);

#endif
