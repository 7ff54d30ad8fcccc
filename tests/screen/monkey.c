/* SPDX-License-Identifier: GPL-2.0-or-later */
/* monkey COUNT SEED RECORDING...: random keys and resizes on each recording; errors are found by
 * the sanitizers, and by a few invariants. */
#include "script.h"
#include "base/index.h"
#include "screen/key.h"
#include "screen/view_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
	dice = hash_u64(dice + 1);
	return dice % sides;
}

static int32_t key_roll(void)
{
	static const int32_t special[] = {
		KEY_CODE_TAB,	  KEY_CODE_ENTER,     KEY_CODE_ESCAPE, KEY_CODE_BACKSPACE,
		KEY_CODE_UP,	  KEY_CODE_DOWN,      KEY_CODE_LEFT,   KEY_CODE_RIGHT,
		KEY_CODE_PAGE_UP, KEY_CODE_PAGE_DOWN, KEY_CODE_HOME,   KEY_CODE_END,
		KEY_CODE_DELETE,  KEY_CODE_F1,
	};

	switch (roll(8)) {
	case 0:
		return (int32_t)roll(32);
	case 1:
		return (int32_t)roll(0x10ffff);
	case 2:
	case 3:
	case 4:
		return special[roll(sizeof(special) / sizeof(special[0]))];
	default:
		return (int32_t)(' ' + roll(95));
	}
}

static void fail(const struct stage *stage, const char *what)
{
	fprintf(stderr, "%s: row %zu of %zu, column %zu of %zu, dice %llu\n", what,
		stage->view->row, stage->shown.grid.row_count, stage->view->column,
		stage->view->now.list.count, (unsigned long long)dice);
	exit(1);
}

static void play(const char *recording, long count)
{
	const struct query query = {.recorded = true};
	struct stage stage;

	stage_open(&stage, recording, &query);
	stage.quiet = true;
	for (long i = 0; i < count; i++) {
		if (!roll(20)) {
			stage.rows = 1 + roll(100);
			stage.columns = 1 + roll(250);
		}
		if (!roll(200))
			stage.cells.ascii = !stage.cells.ascii;
		if (roll(10))
			stage_key(&stage, key_roll());
		else
			stage_mouse(&stage, &(struct mouse){roll(stage.rows), roll(stage.columns),
							    (int)roll(3) - 1});
		stage_draw(&stage);
		if (stage.view->now.list.count == 0 ||
		    stage.view->column >= stage.view->now.list.count ||
		    (stage.view->row && stage.view->row >= stage.shown.grid.row_count))
			fail(&stage, "the cursor is nowhere");
		if (!cells_are_clean(&stage.cells))
			fail(&stage, "something raw is on the screen, or it is wider");
	}
	stage_close(&stage);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	dice = strtoull(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		play(argv[i], strtol(argv[1], NULL, 10));
	return 0;
}
