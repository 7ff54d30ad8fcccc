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
	int64_t width_least;  /* least width of a frame that is drawn */
	uint32_t depth_least; /* frames of the least width are drawn below this depth only */
	bool limited;	      /* the limits were raised because there are too many frames */
	size_t drawn, culled;
	uint32_t depth_most; /* depth of the deepest frame that is drawn */
};

/* Makes a layout; most: limit of frames drawn. The tree must be sorted. */
struct flame_layout flame_layout_of(const struct frame_tree *tree, bool differs, size_t most);

/* Width of a frame, as a part of WIDTH_ALL. If the parts are before and after (differs), it is the
 * mean of the frame's two shares. So a frame that is only in one part has a width, and frames are
 * as wide as those above them together. */
int64_t flame_width(const struct flame_layout *layout, const struct frame_node *node);
bool flame_drawn(const struct flame_layout *layout, const struct frame_node *node);
/* The frame's share of one part. */
int64_t flame_share(const struct flame_layout *layout, const struct frame_node *node,
		    enum frame_part part);
/* The part of a frame's width that was off CPU; 0 if differs. */
int64_t flame_width_off(const struct flame_layout *layout, const struct frame_node *node);

/* Colour of a frame, 0xrrggbb. */
uint32_t flame_colour(const struct flame_layout *layout, const struct frame_node *node, bool off);
/* Colour of a frame by its change from before to after, blue to red. */
uint32_t flame_colour_change(int64_t before, int64_t after);

#endif
