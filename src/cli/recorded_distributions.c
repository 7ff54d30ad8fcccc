/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distributions of a recording (--replay with --trace or --probe): they are read at once, and each
 * is added to the report's when the samples of its interval have been. A recording has them by the
 * minute
 * (-i), and by some columns only.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "base/memory.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/distribution.h"
#include "sample/filter/expression.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_KEPT_MAX (1u << 18)

struct recorded_distributions {
	struct report *report;
	struct recorded_row {
		const struct trace_kind *kind;
		struct recorded_distribution row;
	} * rows;
	size_t count, capacity, given;
	int64_t refused;
	bool any; /* a row of any kind was read */
};

static int distributions_begin(void *state, struct report *report)
{
	struct recorded_distributions *recorded = state;

	recorded->report = report;
	return report->distributions && report->options->replay &&
	       strcmp(report->options->replay, "-") != 0;
}

static const struct trace_kind *kind_of(const struct report *report, const char *name)
{
	for (size_t i = 0; i < report->kind_count; i++)
		if (!strcmp(report->kinds[i]->name, name) && !report->kinds[i]->single)
			return report->kinds[i];
	return NULL;
}

static void distribution_read(void *to, const struct recorded_distribution *row)
{
	struct recorded_distributions *recorded = to;
	const struct report *report = recorded->report;
	const struct trace_kind *kind = kind_of(report, row->trace);

	recorded->any = true;
	if (!kind || !recording_part_has(&report->options->part, row->who.scan.time_us) ||
	    filter_eval_thread(&report->filter, &row->who, kind->known) == VERDICT_REFUSED)
		return;
	if (recorded->count == ROWS_KEPT_MAX) {
		recorded->refused++;
		return;
	}
	recorded->rows = memory_grow(recorded->rows, &recorded->capacity, recorded->count + 1,
				     sizeof(*recorded->rows));
	recorded->rows[recorded->count++] = (struct recorded_row){kind, *row};
}

static int distributions_open(void *state, struct report *report)
{
	struct recorded_distributions *recorded = state;
	const char **paths = config_replay_paths(report->options);
	int err = recording_distributions(paths, &report->options->part, distribution_read,
					  recorded, report->e);

	if (!err && !recorded->any && !recording_is_packed(paths[0]))
		err = error_set(report->e, ENODATA, EXIT_USAGE, "%s has no distributions",
				paths[0]);
	free(paths);
	report_miss(report, "distributions of the recording beyond those that tsnap keeps",
		    recorded->refused);
	return err;
}

/* all: without intervals also those after the last sample. */
static int distributions_collect(void *state, struct report *report, bool all)
{
	struct recorded_distributions *recorded = state;
	const bool rest = all && !report->options->interval_us;

	for (; recorded->given < recorded->count; recorded->given++) {
		const struct recorded_row *row = &recorded->rows[recorded->given];

		if (!rest && row->row.who.scan.time_us > report->scan->time_us)
			break;
		distribution_add_recorded(distributions_of(report), row->kind, &row->row);
	}
	return 0;
}

static void distributions_done(void *state)
{
	struct recorded_distributions *recorded = state;

	free(recorded->rows);
}

const struct report_part recorded_distributions_part = {
	.bytes = sizeof(struct recorded_distributions),
	.begin = distributions_begin,
	.open = distributions_open,
	.collect = distributions_collect,
	.done = distributions_done};
