/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples with hostile names, which were not checked by a reader of files: lines of comm, system
 * call and stack with tabs between, as --folded and --flame write them. */
#include "fuzz_svg.h"
#include "base/names.h"
#include "render/fold.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define ROWS_MAX 64
#define WEIGHT_US 50000

static const char *field_take(const char **at)
{
	size_t length = strcspn(*at, "\t\n");
	const char *name = length ? name_of(*at, length) : NULL;

	*at += length + ((*at)[length] == '\t');
	return name;
}

static size_t samples_make(struct sample *samples, const char *at)
{
	size_t count = 0;

	for (; *at && count < ROWS_MAX; count++) {
		struct sample *sample = &samples[count];

		*sample = *sample_absent();
		sample->scan.weight_us = WEIGHT_US;
		sample->now.state = (int64_t)count % STATE_COUNT;
		sample->thread.comm = field_take(&at);
		sample->call.name = field_take(&at);
		sample->stack.both = field_take(&at);
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return count;
}

/* Checks an interval, whose roots are comm and state. */
static void page_check(const struct interval *interval)
{
	struct frame_tree tree = {0}, again = {0};
	struct text folded = {0}, printable = {0};
	struct error e = {0};
	int64_t all = (int64_t)interval->grid->row_count * WEIGHT_US;

	fold_interval(&tree, interval, NULL);
	fold_write(&folded, &tree);
	must(!fold_read(&again, "own", text_string(&folded), PART_ON, &e),
	     "what tsnap wrote can be read");
	must(!again.count ? !all : again.nodes[0].all[PART_ON] == all, "all the time is there");
	text_add_printable(&printable, text_string(&folded));
	svg_draw(&tree, false, text_string(&printable));
	error_done(&e);
	text_done(&folded);
	text_done(&printable);
	frame_tree_done(&tree);
	frame_tree_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct sample samples[ROWS_MAX];
	struct column_list list = {0};
	struct grid grid = {0};
	struct interval interval = {.grid = &grid, .root_count = 2};
	struct scan scan = {.samples = samples};
	struct text given = {0};
	struct error e = {0};

	text_add(&given, (const char *)bytes, length);
	scan.count = samples_make(samples, text_string(&given));
	must(!column_list_add(&list, "comm,state," FOLD_COLUMNS, false, &e), "columns");
	grid_fill_rows(&grid, &list, &scan);
	page_check(&interval);
	grid_done(&grid);
	text_done(&given);
	names_clear();
	return 0;
}
