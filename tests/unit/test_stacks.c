/* SPDX-License-Identifier: GPL-2.0-or-later */
/* frame_kind, frame_tree, fold */
#include "unit.h"
#include "base/names.h"
#include "render/fold.h"

static const struct frame_kind *kind_of(const char *name)
{
	return frame_kind_of(name, strlen(name));
}

static void kinds(void **state)
{
	assert_string_equal(kind_of("do_futex_[k]")->title, "kernel");
	assert_string_equal(kind_of("malloc_[l]")->title, "library");
	assert_string_equal(kind_of("main")->title, "program");
	assert_string_equal(kind_of("")->title, "program");
	assert_string_equal(kind_of("_[k] ")->title, "program");
	assert_string_equal(kind_of("--")->title, "waker above");
	assert_string_equal(kind_of("operator--")->title, "program");
	assert_string_equal(kind_of("wake_up_[k]_[w]")->title, "waker");
	assert_int_equal(frame_kind_plain(kind_of("malloc_[l]"), 10), 6);
	assert_int_equal(frame_kind_plain(kind_of("--"), 2), 2);
	for (size_t i = 0; i < frame_kind_count; i++) {
		assert_ptr_equal(kind_of(frame_kinds[i].mark), &frame_kinds[i]);
		assert_true(*frame_kinds[i].title);
	}
}

static void assert_folded(struct frame_tree *tree, const char *expected)
{
	struct text out = {0};

	frame_tree_sort(tree);
	fold_write(&out, tree);
	assert_string_equal(text_string(&out), expected);
	text_done(&out);
}

/*          all 31|7
 *       a 11|7   b 20|0
 *    c 1|7
 */
static void stacks_merge(void **state)
{
	struct frame_tree tree = {0};
	const struct frame_node *a;

	assert_folded(&tree, "");
	frame_tree_add(&tree, "b", PART_ON, 20);
	frame_tree_add(&tree, "a", PART_ON, 10);
	frame_tree_add(&tree, "a;c_[l]", PART_ON, 1);
	frame_tree_add(&tree, ";a;;c_[l];", PART_OFF, 7);
	assert_folded(&tree, "a 10\na;c 8\nb 20\n");
	assert_int_equal(tree.count, 4);
	assert_int_equal(tree.nodes[0].all[PART_ON], 31);
	assert_int_equal(tree.nodes[0].all[PART_OFF], 7);
	a = &tree.nodes[tree.nodes[0].child];
	assert_string_equal(a->name, "a");
	assert_int_equal(a->all[PART_ON], 11);
	assert_int_equal(a->own[PART_ON], 10);
	assert_int_equal(a->own[PART_OFF], 0);
	assert_int_equal(a->all[PART_OFF], 7);
	/* first node after those of a */
	assert_string_equal(tree.nodes[frame_tree_next(&tree, tree.nodes[0].child, true)].name,
			    "b");
	/* same name elsewhere is another frame; more may come after sorting */
	frame_tree_add(&tree, "b;a", PART_ON, 1);
	assert_folded(&tree, "a 10\na;c 8\nb 20\nb;a 1\n");
	frame_tree_done(&tree);
}

/* Recursion of any depth ends at the limit, and no weight is lost. */
static void depth_is_bounded(void **state)
{
	struct frame_tree tree = {0};
	struct text deep = {0};
	uint32_t deepest = 0;

	for (int i = 0; i < 10 * FRAME_DEPTH_MAX; i++)
		text_add_string(&deep, "f;");
	frame_tree_add(&tree, text_string(&deep), PART_ON, 3);
	frame_tree_add(&tree, text_string(&deep), PART_ON, 4);
	frame_tree_sort(&tree);
	assert_int_equal(tree.count, FRAME_DEPTH_MAX + 1);
	for (size_t i = 0; i < tree.count; i++)
		if (tree.nodes[i].depth > tree.nodes[deepest].depth)
			deepest = (uint32_t)i;
	assert_int_equal(tree.nodes[deepest].depth, FRAME_DEPTH_MAX);
	assert_string_equal(tree.nodes[deepest].name, FRAMES_DEEPER);
	assert_int_equal(tree.nodes[deepest].own[PART_ON], 7);
	assert_int_equal(tree.nodes[0].all[PART_ON], 7);
	text_done(&deep);
	frame_tree_done(&tree);
}

static void breadth_is_bounded(void **state)
{
	struct frame_tree tree = {0};
	char frames[32];
	int64_t own = 0;

	for (int i = 0; i < (int)FRAMES_MAX; i++) {
		snprintf(frames, sizeof(frames), "%d;x", i);
		frame_tree_add(&tree, frames, i % 2, 1);
	}
	frame_tree_sort(&tree);
	assert_int_equal(tree.count, FRAMES_MAX + 1);
	for (uint32_t at = 0; (at = frame_tree_next(&tree, at, false));)
		own += tree.nodes[at].own[0] + tree.nodes[at].own[1];
	assert_int_equal(own, FRAMES_MAX);
	assert_int_equal(tree.nodes[0].all[0] + tree.nodes[0].all[1], FRAMES_MAX);
	frame_tree_done(&tree);
}

static void weights_stay_in_bounds(void **state)
{
	struct frame_tree tree = {0};

	frame_tree_add(&tree, "a;b", PART_ON, INT64_MAX);
	frame_tree_add(&tree, "a;c", PART_ON, INT64_MAX);
	frame_tree_add(&tree, "a;c", PART_OFF, INT64_MAX);
	assert_int_equal(tree.nodes[0].all[PART_ON], INT64_MAX);
	assert_folded(&tree, "a;b 9223372036854775807\na;c 9223372036854775807\n");
	frame_tree_done(&tree);
}

struct row {
	const char *comm;
	int64_t tid, state, weight_us;
	const char *syscall, *stack;
};

/* Checks the folded lines of these rows, by comm and tid. */
static void assert_rows(const struct row *rows, size_t count, const char *expected)
{
	struct column_list list = {0};
	struct sample samples[8];
	struct scan scan = {.samples = samples, .count = count};
	struct frame_tree tree = {0};
	struct grid grid = {0};
	struct interval interval = {.grid = &grid, .root_count = 2};
	struct error e = {0};

	for (size_t i = 0; i < count; i++) {
		samples[i] = *sample_absent();
		samples[i].thread.comm = name_of_string(rows[i].comm);
		samples[i].thread.tid = rows[i].tid;
		samples[i].now.state = rows[i].state;
		samples[i].scan.weight_us = rows[i].weight_us;
		samples[i].call.name = name_of_string(rows[i].syscall);
		samples[i].stack.both = name_of_string(rows[i].stack);
	}
	assert_int_equal(column_list_add(&list, "comm,tid," FOLD_COLUMNS, false, &e), 0);
	grid_fill_rows(&grid, &list, &scan);
	fold_interval(&tree, &interval, NULL);
	assert_folded(&tree, expected);
	frame_tree_done(&tree);
	grid_done(&grid);
}

/* The system call is between the user's frames and the kernel's, wherever those begin. */
static void system_calls(void **state)
{
	static const struct row rows[] = {
		{"a", 1, STATE_DISK, 5, "read", "m;r_[l];e_[k];v_[k]"},
		{"b", 1, STATE_DISK, 5, "read", "m;r_[l]"},
		{"c", 1, STATE_DISK, 5, "read", "e_[k]"},
		{"d", 1, STATE_DISK, 5, "read", NULL},
		{"e", 1, STATE_DISK, 5, "read", "m;--;w_[w]"},
		{"f", 1, STATE_ON, 5, NULL, "m;e_[k]"},
	};

	assert_rows(rows, 6,
		    "a;1;m;r;read;e_[k];v_[k] 5\n"
		    "b;1;m;r;read 5\n"
		    "c;1;read;e_[k] 5\n"
		    "d;1;read 5\n"
		    "e;1;m;read;--;w_[w] 5\n"
		    "f;1;m;e_[k] 5\n");
}

static void hostile_names(void **state)
{
	static const struct row rows[] = {
		{"a;b_[l]", 1, STATE_ON, 5, NULL, "x\n;\xff 3\033[0m"},
		{NULL, ABSENT, STATE_ON, 5, NULL, NULL},
		{"", 1, STATE_ON, 5, ";\n", "f 8;g 9.5"},
		{"k", 7, STATE_ON, 0, NULL, "m"},
		{"k", 8, STATE_ON, -1, NULL, "m"},
		{"k", 9, STATE_ON, ABSENT, NULL, "m"},
	};

	assert_rows(rows, 6,
		    "-;- 5\n"
		    "-;1;f 8;g 9.5;\\x0a 5\n"
		    "a:b_[l];1;x\\x0a;\\xff 3\\x1b[0m 5\n");
	/* flamegraph.pl reads two numbers at the end as two weights */
	assert_rows(&(struct row){"k", 1, STATE_ON, 5, NULL, "pool 3;f 8.5"}, 1,
		    "k;1;pool 3;f_8.5 5\n");
}

static void assert_read(const char *text, int err, const char *words, const char *expected)
{
	struct frame_tree tree = {0};
	struct error e = {0};

	assert_int_equal(fold_read(&tree, "x.folded", text, PART_AFTER, &e), err);
	assert_string_equal(e.line, words);
	if (!err)
		assert_folded(&tree, expected);
	error_done(&e);
	frame_tree_done(&tree);
}

#define REFUSED(line)          \
	"x.folded: line " line \
	": not a folded stack (frames with ; between them, a space, a whole number)"

static void folded_is_read(void **state)
{
	static const char same[] = "a\\x0a\\\\;b c 5\na\\x0a\\\\;d_[k] 9223372036854775807\n";

	assert_read("", 0, "", "");
	assert_read("\n\na;b 3\n\na;b 4", 0, "", "a;b 7\n");
	assert_read(same, 0, "", same);
	assert_read("; 5\n-;a 1\n\\x3b 2\n", 0, "", "- 7\n-;a 1\n");
	assert_read("a\033;b\xff 3\n", 0, "", "a\\x1b;b\\xff 3\n");
	assert_read("a;b 3\na;b\n", -EINVAL, REFUSED("2"), NULL);
	assert_read("a;b \n", -EINVAL, REFUSED("1"), NULL);
	assert_read(" 5\n", -EINVAL, REFUSED("1"), NULL);
	assert_read("a -5\n", -EINVAL, REFUSED("1"), NULL);
	assert_read("a 1.5\n", -EINVAL, REFUSED("1"), NULL);
	assert_read("a 9223372036854775808\n", -EINVAL, REFUSED("1"), NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),

		cmocka_unit_test(stacks_merge),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(breadth_is_bounded),
		cmocka_unit_test(weights_stay_in_bounds),

		cmocka_unit_test(system_calls),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(folded_is_read),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
