/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile folded stacks: read, or refused with a message; stacks that were read are written such
 * that they are read again as the same, and can be drawn. */
#include "fuzz_svg.h"
#include "base/names.h"
#include "render/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int64_t weight_of(const struct frame_tree *tree)
{
	return tree->count ? tree->nodes[0].all[PART_AFTER] : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct text given = {0}, once = {0};
	struct frame_tree tree = {0}, again = {0};
	struct error e = {0};

	text_add(&given, (const char *)bytes, length);
	if (fold_read(&tree, "hostile", text_string(&given), PART_AFTER, &e))
		must(e.line[0], "an error has words");
	frame_tree_sort(&tree);
	fold_write(&once, &tree);
	must(!fold_read(&again, "own", text_string(&once), PART_AFTER, &e),
	     "what tsnap wrote can be read");
	must(weight_of(&again) == weight_of(&tree), "with all of its weight");
	svg_draw(&tree, false, "");
	fold_read(&tree, "own", text_string(&once), PART_BEFORE, &e);
	frame_tree_sort(&tree);
	svg_draw(&tree, true, "a\nb");
	error_done(&e);
	text_done(&given);
	text_done(&once);
	frame_tree_done(&tree);
	frame_tree_done(&again);
	names_clear();
	return 0;
}
