/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flame graph of the sampled time, on CPU and off it. */
#include "render/flame_svg.h"
#include "render/fold.h"

static const char *title_of(const struct frame_tree *tree)
{
	const int64_t *all;

	if (!tree->count)
		return "Flame graph: no samples";
	all = tree->nodes[0].all;
	if (!all[PART_OFF])
		return "Flame graph: threads on CPU";
	return all[PART_ON] ? "Flame graph: threads on CPU and off CPU"
			    : "Flame graph: threads off CPU";
}

static void flame_add(struct text *out, const struct interval *interval)
{
	struct interval whole = *interval;
	struct text subtitle = {0}, footer = {0};
	struct frame_tree tree = {0};

	whole.width = 0;
	fold_interval(&tree, interval);
	interval_add_origin(&subtitle, &whole);
	text_add_char(&subtitle, '\n');
	interval_add_scans(&subtitle, &whole);
	if (interval->command) {
		text_add_char(&subtitle, '\n');
		text_add_printable(&subtitle, interval->command);
	}
	/* the whole footer, in lines as long as fit */
	whole.width = FLAME_LINE_COLUMNS;
	interval_add_absent(&footer, &whole);
	interval_add_missed(&footer, &whole);
	flame_svg_add(out, &(struct flame){
				   .tree = &tree,
				   .title = title_of(&tree),
				   .subtitle = text_string(&subtitle),
				   .footer = text_string(&footer),
			   });
	frame_tree_done(&tree);
	text_done(&subtitle);
	text_done(&footer);
}

const struct renderer renderer_flame = {
	.name = "flame",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.has_footer = true,
	.whole = "flame graph",
	.chains = true,
	.columns = FOLD_ROOTS_DEFAULT,
	.behind = FOLD_COLUMNS,
	.add = flame_add,
};
