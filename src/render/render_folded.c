/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folded stacks, weighed by sampled time in microseconds. */
#include "render/fold.h"

static void folded_add(struct text *out, const struct interval *interval)
{
	struct frame_tree tree = {0};

	fold_interval(&tree, interval);
	fold_write(out, &tree);
	frame_tree_done(&tree);
}

const struct renderer renderer_folded = {
	.name = "folded",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.at_end = true,
	.chains = true,
	.columns = FOLD_ROOTS_DEFAULT,
	.behind = FOLD_COLUMNS,
	.add = folded_add,
};
