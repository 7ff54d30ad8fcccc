/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks merged into a tree of frames, in bounded memory; folded stacks and flame graphs are
 * written from it. Names are transient (base/names.h).
 *
 * A weight has two parts: time on a CPU and off it, or before and after.
 */
#ifndef TSNAP_RENDER_FRAME_TREE_H
#define TSNAP_RENDER_FRAME_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "render/frame_kind.h"

#define FRAMES_MAX (1u << 18)
#define FRAME_DEPTH_MAX 512
/* Names of frames for stacks that did not fit or have no frame. */
#define FRAMES_FULL "[more frames than tsnap keeps]"
#define FRAMES_NONE "-"
#define FRAMES_DEEPER "[deeper frames]"

enum frame_part {
	PART_ON = 0,
	PART_OFF = 1,
	PART_BEFORE = 0,
	PART_AFTER = 1,
	PART_COUNT = 2,
};

struct frame_node {
	const char *name; /* name with its annotation */
	const struct frame_kind *kind;
	uint32_t parent, child, sibling; /* child and sibling: after frame_tree_sort(); 0: none */
	uint32_t depth;
	int64_t own[PART_COUNT]; /* weight of stacks that end here */
	int64_t all[PART_COUNT]; /* weight of these and of all frames above */
};

/* A zeroed tree is empty. Node 0 is below all stacks; it exists once one was added. */
struct frame_tree {
	struct frame_node *nodes;
	size_t count, capacity;
	struct index names;    /* name to its number */
	struct index children; /* node and a name's number to a child */
};

/* frames: outermost first, separated by ';'; empty ones are skipped. */
void frame_tree_add(struct frame_tree *tree, const char *frames, enum frame_part part,
		    int64_t weight);
/* Orders each node's children by name. */
void frame_tree_sort(struct frame_tree *tree);
/* The node after this one, parents first; 0: it was the last. past: skip the nodes above this
 * one. */
uint32_t frame_tree_next(const struct frame_tree *tree, uint32_t at, bool past);
void frame_tree_done(struct frame_tree *tree);

#endif
