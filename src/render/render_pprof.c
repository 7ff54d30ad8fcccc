/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile for pprof, weighed as folded stacks are: stacks as they are, and the chosen columns as
 * labels of samples.
 */
#include "base/clock.h"
#include "render/fold.h"
#include "render/pprof.h"
#include "report/value.h"

#define LABEL_COLUMNS "comm,pid,state,syscall,why,waits_on,waker_comm,container"

static enum pprof_value value_of_state(int64_t state)
{
	switch (state) {
	case STATE_ON:
		return PPROF_ON_CPU;
	case STATE_RQ:
		return PPROF_RUN_QUEUE;
	case STATE_DISK:
		return PPROF_DISK;
	default:
		return PPROF_OFF_CPU;
	}
}

static void label_add(struct pprof *pprof, const struct column *column, union value value)
{
	struct text words = {0};

	if (value_is_absent(column, value))
		return;
	if (column->kind != KIND_NUMBER)
		value_add(&words, column, value);
	pprof_label(pprof, column->name, column->kind == KIND_NUMBER ? NULL : text_string(&words),
		    value.number);
	text_done(&words);
}

static void pprof_add(struct text *out, const struct interval *interval)
{
	struct text frames = {0}, files = {0};
	struct pprof pprof = {0};

	for (size_t row = 0; row < interval->grid->row_count; row++) {
		int64_t state, weight_us = fold_weight_us(interval, row, &state);

		if (!weight_us)
			continue;
		for (size_t i = 0; i < interval->root_count; i++)
			label_add(&pprof, interval->grid->list->items[i],
				  grid_row(interval->grid, row)[i]);
		text_clear(&frames);
		fold_add_stack(&frames, interval, row);
		text_clear(&files);
		fold_add_files(&files, interval, row);
		pprof_sample(&pprof, text_string(&frames), text_string(&files),
			     value_of_state(state), ratio(weight_us, NS_PER_US, 1));
	}
	/* no file is better than half a file */
	if (pprof_end(&pprof, interval->tally->from_us, interval->tally->elapsed_us, out))
		text_clear(out);
	pprof_done(&pprof);
	text_done(&frames);
	text_done(&files);
}

const struct renderer renderer_pprof = {
	.name = "pprof",
	.kind = RENDERER_STACKS,
	.grouped = true,
	.whole = "profile",
	.columns = LABEL_COLUMNS,
	.behind = FOLD_COLUMNS ",ufiles",
	.add = pprof_add,
};
