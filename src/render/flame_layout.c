/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/flame_layout.h"
#include "report/value.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH_LEAST (WIDTH_ALL / 10000) /* a tenth of a pixel */
#define MIX_ALL 256
#define MIX_OFF 150 /* share of white off CPU */
#define WHITE 0xffffff
#define COLOUR_SAME 0xe9e6df
#define COLOUR_GREW 0xec6a54
#define COLOUR_SHRANK 0x5c9fd8

int64_t flame_share(const struct flame_layout *layout, const struct frame_node *node,
		    enum frame_part part)
{
	return ratio(node->all[part], WIDTH_ALL, layout->tree->nodes[0].all[part]);
}

int64_t flame_width(const struct flame_layout *layout, const struct frame_node *node)
{
	const int64_t *all = layout->tree->nodes[0].all;
	int sides = (all[0] > 0) + (all[1] > 0);

	if (!layout->differs)
		return ratio(sum(node->all[0], node->all[1]), WIDTH_ALL, sum(all[0], all[1]));
	if (!sides)
		return 0;
	return (flame_share(layout, node, PART_BEFORE) + flame_share(layout, node, PART_AFTER)) /
	       sides;
}

int64_t flame_width_off(const struct flame_layout *layout, const struct frame_node *node)
{
	return layout->differs ? 0
			       : ratio(node->all[PART_OFF], flame_width(layout, node),
				       sum(node->all[0], node->all[1]));
}

bool flame_drawn(const struct flame_layout *layout, const struct frame_node *node)
{
	int64_t width = flame_width(layout, node);

	return width > layout->width_least ||
	       (width == layout->width_least && node->depth < layout->depth_least);
}

struct position {
	int64_t width;
	uint32_t depth;
};

/* Order of drawing: wide frames first, then low ones, so that no frame is drawn without those below
 * it. */
static int position_compare(const void *a, const void *b)
{
	const struct position *x = a, *y = b;

	if (x->width != y->width)
		return x->width > y->width ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

/* Sets the limits of width and depth so that no more than `most` frames are drawn. */
static void layout_limit(struct flame_layout *layout, size_t most)
{
	const struct frame_tree *tree = layout->tree;
	struct position *positions;

	layout->width_least = WIDTH_LEAST;
	layout->depth_least = FRAME_DEPTH_MAX + 1;
	if (tree->count <= most)
		return;
	positions = memory_get(tree->count * sizeof(*positions));
	for (size_t i = 0; i < tree->count; i++)
		positions[i] = (struct position){flame_width(layout, &tree->nodes[i]),
						 tree->nodes[i].depth};
	qsort(positions, tree->count, sizeof(*positions), position_compare);
	if (positions[most].width >= WIDTH_LEAST) {
		layout->limited = true;
		layout->width_least = positions[most].width;
		layout->depth_least = positions[most].depth;
	}
	free(positions);
}

struct flame_layout flame_layout_of(const struct frame_tree *tree, bool differs, size_t most)
{
	struct flame_layout layout = {.tree = tree, .differs = differs};

	layout_limit(&layout, most);
	for (size_t i = 1; i < tree->count; i++) {
		const struct frame_node *node = &tree->nodes[i];

		if (!flame_drawn(&layout, node)) {
			layout.culled++;
			continue;
		}
		layout.drawn++;
		if (node->depth > layout.depth_most)
			layout.depth_most = node->depth;
	}
	return layout;
}

/* Mixes each channel: part / MIX_ALL of the way from one to the other. */
static uint32_t colour_mix(uint32_t from, uint32_t to, int part)
{
	uint32_t mixed = 0;

	for (int shift = 0; shift < 24; shift += 8) {
		int a = from >> shift & 0xff, b = to >> shift & 0xff;

		mixed |= (uint32_t)(a + (b - a) * part / MIX_ALL) << shift;
	}
	return mixed;
}

uint32_t flame_colour_change(int64_t before, int64_t after)
{
	int part = (int)ratio(after > before ? after - before : before - after, MIX_ALL,
			      before + after);

	return colour_mix(COLOUR_SAME, after > before ? COLOUR_GREW : COLOUR_SHRANK, part);
}

uint32_t flame_colour(const struct flame_layout *layout, const struct frame_node *node, bool off)
{
	uint32_t colour;

	if (layout->differs)
		return flame_colour_change(flame_share(layout, node, PART_BEFORE),
					   flame_share(layout, node, PART_AFTER));
	/* a function has the same colour everywhere */
	colour = colour_mix(node->kind->colours[0], node->kind->colours[1],
			    (int)(hash_bytes(node->name, strlen(node->name)) % MIX_ALL));
	return off ? colour_mix(colour, WHITE, MIX_OFF) : colour;
}
