/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame_layout, flame_svg */
#include "unit.h"
#include "base/names.h"
#include "render/flame_svg.h"
#include "render/fold.h"
#include "render/renderer.h"

static const struct frame_node *node_of(const struct frame_tree *tree, const char *name)
{
	for (size_t i = 0; i < tree->count; i++)
		if (!strcmp(tree->nodes[i].name, name))
			return &tree->nodes[i];
	fail_msg("no frame %s", name);
	return NULL;
}

/*   on|off    all 60|20
 *         a 60|0     b 0|20
 *     c 15|0
 */
static void widths_of_time(void **state)
{
	struct frame_tree tree = {0};
	struct flame_layout layout;

	frame_tree_add(&tree, "a", PART_ON, 45);
	frame_tree_add(&tree, "a;c_[k]", PART_ON, 15);
	frame_tree_add(&tree, "b", PART_OFF, 20);
	frame_tree_sort(&tree);
	layout = flame_layout_of(&tree, false, 100);
	assert_int_equal(layout.drawn, 3);
	assert_int_equal(layout.culled, 0);
	assert_int_equal(layout.depth_most, 2);
	assert_int_equal(flame_width(&layout, &tree.nodes[0]), WIDTH_ALL);
	assert_int_equal(flame_width_off(&layout, &tree.nodes[0]), WIDTH_ALL / 4);
	assert_int_equal(flame_width(&layout, node_of(&tree, "a")), WIDTH_ALL / 4 * 3);
	assert_int_equal(flame_width_off(&layout, node_of(&tree, "a")), 0);
	assert_int_equal(flame_width(&layout, node_of(&tree, "b")), WIDTH_ALL / 4);
	assert_int_equal(flame_width_off(&layout, node_of(&tree, "b")), WIDTH_ALL / 4);
	assert_true(flame_colour(&layout, node_of(&tree, "b"), true) !=
		    flame_colour(&layout, node_of(&tree, "b"), false));
	frame_tree_done(&tree);
}

/*  before|after   all 100|400: a fifth each way
 *           a 50|300      b 50|0      c 0|100
 */
static void widths_of_changes(void **state)
{
	struct frame_tree tree = {0};
	struct flame_layout layout;
	const struct frame_node *a, *b, *c;

	frame_tree_add(&tree, "a", PART_BEFORE, 50);
	frame_tree_add(&tree, "b", PART_BEFORE, 50);
	frame_tree_add(&tree, "a", PART_AFTER, 300);
	frame_tree_add(&tree, "c", PART_AFTER, 100);
	frame_tree_sort(&tree);
	layout = flame_layout_of(&tree, true, 100);
	a = node_of(&tree, "a");
	b = node_of(&tree, "b");
	c = node_of(&tree, "c");
	assert_int_equal(flame_share(&layout, a, PART_BEFORE), WIDTH_ALL / 2);
	assert_int_equal(flame_share(&layout, a, PART_AFTER), WIDTH_ALL / 4 * 3);
	assert_int_equal(flame_width(&layout, a), WIDTH_ALL / 8 * 5);
	assert_int_equal(flame_width(&layout, b), WIDTH_ALL / 4);
	assert_int_equal(flame_width(&layout, c), WIDTH_ALL / 8);
	assert_int_equal(flame_width(&layout, &tree.nodes[0]), WIDTH_ALL);
	assert_int_equal(flame_width_off(&layout, a), 0);
	assert_int_equal(flame_colour(&layout, b, false), flame_colour_change(1, 0));
	assert_int_equal(flame_colour(&layout, c, false), flame_colour_change(0, 1));
	assert_int_equal(flame_colour(&layout, a, false), flame_colour_change(2, 3));
	frame_tree_done(&tree);
}

static int red_over_blue(uint32_t colour)
{
	return (int)(colour >> 16) - (int)(colour & 0xff);
}

static void colours_of_changes(void **state)
{
	assert_int_equal(flame_colour_change(5, 5), flame_colour_change(0, 0));
	assert_true(red_over_blue(flame_colour_change(1, 2)) >
		    red_over_blue(flame_colour_change(1, 1)));
	assert_true(red_over_blue(flame_colour_change(0, 2)) >
		    red_over_blue(flame_colour_change(1, 2)));
	assert_true(red_over_blue(flame_colour_change(2, 1)) < 0);
	assert_true(red_over_blue(flame_colour_change(2, 0)) <
		    red_over_blue(flame_colour_change(2, 1)));
}

static void narrow_frames_are_counted(void **state)
{
	struct frame_tree tree = {0};
	struct flame_layout layout;
	struct text frames = {0}, out = {0};

	frame_tree_add(&tree, "wide", PART_ON, 10000000);
	for (int i = 0; i < 300; i++) {
		text_clear(&frames);
		text_add_format(&frames, "f%d;g", i);
		frame_tree_add(&tree, text_string(&frames), PART_ON, i < 100 ? 10 : 20000 + i);
	}
	frame_tree_sort(&tree);
	layout = flame_layout_of(&tree, false, 20000);
	assert_int_equal(layout.drawn, 401);
	assert_int_equal(layout.culled, 200);
	/* only a few are drawn: the widest */
	layout = flame_layout_of(&tree, false, 50);
	assert_true(layout.limited);
	assert_true(layout.drawn <= 50 && layout.drawn >= 45);
	assert_int_equal(layout.drawn + layout.culled, 601);
	assert_true(flame_drawn(&layout, node_of(&tree, "wide")));
	flame_svg_add(&out,
		      &(struct flame){.tree = &tree, .title = "", .subtitle = "", .footer = ""});
	assert_non_null(strstr(out.bytes, ">200 frames narrower than 0.01 % are not drawn<"));
	assert_non_null(strstr(out.bytes, "f299"));
	assert_null(strstr(out.bytes, "f99"));
	text_done(&frames);
	text_done(&out);
	frame_tree_done(&tree);
}

/* Frames of equal width are drawn if they are nearer to the root. */
static void equal_frames_are_culled(void **state)
{
	struct frame_tree tree = {0};
	struct flame_layout layout;
	char frames[32];

	for (int i = 0; i < 100; i++) {
		snprintf(frames, sizeof(frames), "%d;a;b;c", i);
		frame_tree_add(&tree, frames, PART_ON, 1);
	}
	frame_tree_sort(&tree);
	layout = flame_layout_of(&tree, false, 250);
	assert_true(layout.limited);
	assert_int_equal(layout.drawn, 200);
	assert_int_equal(layout.culled, 200);
	assert_int_equal(layout.depth_most, 2);
	frame_tree_done(&tree);
}

/* A flame graph at each interval of a long run: each frees its frames. */
static void frames_are_transient(void **state)
{
	struct frame_tree tree = {0};

	frame_tree_add(&tree, "transient", PART_ON, 1);
	assert_ptr_not_equal(name_of_string("transient"), node_of(&tree, "transient")->name);
	frame_tree_done(&tree);
}

/* Samples without frames are counted apart from those that did not fit, in any order. */
static void frames_that_do_not_fit_are_told(void **state)
{
	struct frame_tree tree = {0};
	char frame[16];

	for (unsigned int i = 0; i < FRAMES_MAX - 1; i++) {
		snprintf(frame, sizeof(frame), "%u", i);
		frame_tree_add(&tree, frame, PART_ON, 1);
	}
	frame_tree_add(&tree, "", PART_ON, 2);
	frame_tree_add(&tree, "new", PART_ON, 3);
	assert_int_equal(node_of(&tree, FRAMES_NONE)->own[PART_ON], 2);
	assert_int_equal(node_of(&tree, FRAMES_FULL)->own[PART_ON], 3);
	frame_tree_done(&tree);
	names_clear();
}

static void assert_has(const struct text *out, const char *words)
{
	if (!strstr(text_string(out), words))
		fail_msg("not in the SVG: %s", words);
}

static void words_are_escaped(void **state)
{
	struct frame_tree tree = {0};
	struct text out = {0};

	frame_tree_add(&tree, "</title><script>;]]>&\"'_[k]", PART_ON, 1500000);
	frame_tree_add(&tree, "b", PART_OFF, 500000);
	frame_tree_sort(&tree);
	flame_svg_add(&out, &(struct flame){.tree = &tree,
					    .title = "<b>",
					    .subtitle = "one & two\nthree",
					    .footer = "a > b\n"});
	assert_has(&out, "<title>&lt;b&gt;</title>");
	assert_has(&out, ">one &amp; two</text>");
	assert_has(&out, ">three</text>");
	assert_has(&out, ">a &gt; b</text>");
	assert_has(&out, "<title>&lt;/title&gt;&lt;script&gt;\nprogram, 1.500 s, 75.00 % of all; "
			 "all on CPU</title>");
	assert_has(&out, "<title>]]&gt;&amp;&quot;&#39;\nkernel, 1.500 s, 75.00 % of all, 100.00 % "
			 "of &lt;/title&gt;&lt;script&gt;; all on CPU</title>");
	assert_has(&out, "group, 2.000 s; 1.500 s on CPU, 0.500 s off CPU</title>");
	text_done(&out);
	frame_tree_done(&tree);
}

/* The footer has all that was missed, however much that is. */
static void all_that_was_missed_is_told(void **state)
{
	struct source_status status = {.cpus = ABSENT, .rate_hz = ABSENT};
	struct column_list list = {.count = 0};
	struct grid grid = {.list = &list};
	struct tally tally = {.scans = 0};
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status};
	struct text out = {0};

	for (int i = 0; i < 9; i++)
		source_status_miss(&status, "things of which a line tells no more than some", 1);
	source_status_miss(&status, "the last thing", 1);
	renderer_flame.add(&out, &interval);
	assert_has(&out, "the last thing</text>");
	text_done(&out);
}

static void changes_are_told(void **state)
{
	struct frame_tree tree = {0};
	struct text out = {0};
	struct error e = {0};

	fold_read(&tree, "before", "a;x 3\na;y 1\n", PART_BEFORE, &e);
	fold_read(&tree, "after", "a;x 10\na;z_[k] 30\n", PART_AFTER, &e);
	frame_tree_sort(&tree);
	flame_svg_add(
		&out,
		&(struct flame){
			.tree = &tree, .differs = true, .title = "", .subtitle = "", .footer = ""});
	assert_has(&out, "<title>a\nbefore 100.00 % (4), after 100.00 % (40): +0.00 points, 1.00 "
			 "times</title>");
	assert_has(&out, "<title>x\nbefore 75.00 % (3), after 25.00 % (10): -50.00 points, 0.33 "
			 "times</title>");
	assert_has(&out, "<title>y\nbefore 25.00 % (1), after 0.00 % (0): -25.00 points</title>");
	assert_has(&out, "<title>z\nkernel, before 0.00 % (0), after 75.00 % (30): +75.00 "
			 "points</title>");
	text_done(&out);
	frame_tree_done(&tree);
}

/* Input without samples, and with samples that stand for no time. */
static void nothing_to_draw(void **state)
{
	struct frame_tree tree = {0};
	struct text out = {0};

	for (int added = 0; added < 2; added++) {
		for (int differs = 0; differs < 2; differs++) {
			text_clear(&out);
			flame_svg_add(&out, &(struct flame){.tree = &tree,
							    .differs = differs,
							    .title = "empty",
							    .subtitle = "",
							    .footer = ""});
			assert_has(&out, "</svg>\n<g id=\"head\">");
		}
		frame_tree_add(&tree, "a;b", PART_ON, 0);
		frame_tree_sort(&tree);
	}
	text_done(&out);
	frame_tree_done(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_of_time),
		cmocka_unit_test(widths_of_changes),
		cmocka_unit_test(colours_of_changes),
		cmocka_unit_test(narrow_frames_are_counted),
		cmocka_unit_test(equal_frames_are_culled),
		cmocka_unit_test(frames_are_transient),
		cmocka_unit_test(frames_that_do_not_fit_are_told),
		cmocka_unit_test(words_are_escaped),
		cmocka_unit_test(all_that_was_missed_is_told),
		cmocka_unit_test(changes_are_told),
		cmocka_unit_test(nothing_to_draw),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
