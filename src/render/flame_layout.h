/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Layout of a tree: the frames that are drawn, their widths and colours. */
#ifndef TSNAP_RENDER_FLAME_LAYOUT_H
#define TSNAP_RENDER_FLAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "render/frame_tree.h"

#define WIDTH_ALL 100000000 /* 100 %, as numbers of six decimals */

struct flame_layout {
	const struct frame_tree *tree;
	bool differs;
	int64_t width_least;  /* narrower frames are not drawn, */
	uint32_t depth_least; /* nor are those as narrow that are as high */
	bool limited;	      /* because there are too many */
	size_t drawn, culled;
	uint32_t depth_most; /* depth of the deepest frame that is drawn */
};

/* most: frames drawn. The tree is sorted. */
struct flame_layout flame_layout_of(const struct frame_tree *tree, bool differs, size_t most);

/* Width of a frame, of WIDTH_ALL. Where parts differ, the mean of the frame's two shares, so that
 * what is only in one of them has a place, and frames are as wide as those above them together. */
int64_t flame_width(const struct flame_layout *layout, const struct frame_node *node);
bool flame_drawn(const struct flame_layout *layout, const struct frame_node *node);
/* A part's share in all of the part. */
int64_t flame_share(const struct flame_layout *layout, const struct frame_node *node,
		    enum frame_part part);
/* The part of its width that was off CPU; 0 where parts differ. */
int64_t flame_width_off(const struct flame_layout *layout, const struct frame_node *node);

/* 0xrrggbb */
uint32_t flame_colour(const struct flame_layout *layout, const struct frame_node *node, bool off);
/* Colour of a frame by its change from before to after, blue to red. */
uint32_t flame_colour_change(int64_t before, int64_t after);

#endif
