/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of samples (--csv, --json), which are written with each scan, or wait for the peer that they
 * wait for (--patience). */
#include "render/renderer.h"
#include "report/late_waits.h"
#include "report/report.h"
#include "report/value.h"

#include <errno.h>

struct rows {
	struct report *report;
	struct late_waits late;
};

/* Columns of /proc values are valid only during a scan. */
static int rows_begin(void *state, struct report *report)
{
	struct rows *rows = state;

	if (report->grouped || report->record || report->events)
		return 0;
	rows->report = report;
	if (!report->config->patience_us || !report->list.wide)
		return 1;
	return error_set(report->e, EINVAL, EXIT_USAGE,
			 "--patience can't go with columns of /proc/TID/stat, status and io, which "
			 "are those of the scan");
}

static uint64_t rows_needs(const void *state)
{
	const struct rows *rows = state;

	return column_list_needs(&rows->report->list);
}

static void rows_write(struct report *report, const struct scan *batch)
{
	grid_fill_rows(&report->grid, &report->list, batch);
	report->renderer->add(&report->out, report->interval);
}

static void rows_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct rows *rows = state;
	struct sample row = *sample;

	(void)note;
	rows_write(rows->report, &(struct scan){.samples = &row, .count = 1});
}

static bool rows_take(void *state, struct report *report, const struct scan *batch)
{
	struct rows *rows = state;

	if (!report->config->patience_us) {
		rows_write(report, batch);
		return false;
	}
	rows->late.now_us = sum(report->total_us, batch->weight_us);
	for (size_t i = 0; i < batch->count; i++)
		late_waits_queue(&rows->late, &batch->samples[i], rows_add, rows);
	return false;
}

/* Writes all rows that wait: no more facts will be found. */
static void rows_save(void *state, struct report *report)
{
	struct rows *rows = state;

	(void)report;
	late_waits_end(&rows->late, rows_add, rows);
}

static int rows_collect(void *state, struct report *report, bool all)
{
	bool crowded = report->source->crowded && report->source->crowded(report->source);
	struct rows *rows = state;

	if (all)
		rows_save(rows, report);
	else
		late_waits_pass(&rows->late,
				crowded ? INT64_MAX
					: sum(report->total_us, report->scan->weight_us) -
						  report->config->patience_us,
				rows_add, rows);
	return 0;
}

static bool rows_hold(const void *state)
{
	const struct rows *rows = state;

	return rows->late.count;
}

static void rows_done(void *state)
{
	struct rows *rows = state;

	late_waits_done(&rows->late);
}

const struct report_part rows_part = {.bytes = sizeof(struct rows),
				      .begin = rows_begin,
				      .needs = rows_needs,
				      .take = rows_take,
				      .add = rows_add,
				      .collect = rows_collect,
				      .holds = rows_hold,
				      .save = rows_save,
				      .done = rows_done};
