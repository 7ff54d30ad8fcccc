/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flame graph as one SVG file that needs nothing else: frames with titles, and a script that
 * zooms, searches and shows details. Without the script it is still a picture.
 */
#ifndef TSNAP_RENDER_FLAME_SVG_H
#define TSNAP_RENDER_FLAME_SVG_H

#include <stdbool.h>

#include "base/text.h"
#include "render/fold.h"

/* Layout of a tree: the frames that are drawn, their widths and colours. */
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

#define FLAME_DRAWN_MAX 20000  /* limit of frames */
#define FLAME_LINE_COLUMNS 170 /* longest subtitle and footer */

struct flame {
	const struct frame_tree *tree; /* sorted */
	bool differs; /* parts are before and after, in any unit; false: us on a CPU and off it */
	const char *title;
	const char *subtitle; /* lines; "" for none */
	const char *footer;   /* lines; "" for none */
	size_t most;	      /* limit of frames that are drawn; 0: FLAME_DRAWN_MAX */
	bool within;	      /* it is an element of a page, not a file */
};

/* Adds the file. All words are printable; they are escaped here. */
void flame_svg_add(struct text *out, const struct flame *flame);
/* Sets, for each node of the tree, the number of the frame that shows its time: its own, or the
 * nearest below that is drawn. Frames are numbered as they stand in the file. */
void flame_number(const struct flame *flame, uint32_t *frames);

/* Title of a graph of times on a CPU and off it. */
const char *flame_title(const struct frame_tree *tree);

/* Adds bytes of printable text as XML or HTML, in elements and quoted values alike. */
void xml_add(struct text *out, const char *bytes, size_t length);

/* flame.css and flame.js, embedded. */
extern const char flame_style[], flame_script[];

#endif
