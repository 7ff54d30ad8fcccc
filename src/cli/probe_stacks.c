/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of a probe (--probe with --folded, --flame or --pprof), in place of those of samples: each
 * has the time of its calls, or of what is no time its events or the sum of their values.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "kernel/own_probe.h"
#include "base/clock.h"
#include "render/renderer.h"

static int stacks_begin(void *state, struct report *report)
{
	(void)state;
	return report->renderer->kind == RENDERER_STACKS &&
	       own_probes_report(report->options->live.own);
}

static bool stacks_take(void *state, struct report *report, const struct scan *batch)
{
	(void)state;
	report->tally.samples -= (int64_t)batch->count;
	return true;
}

static void traced_take(void *to, const struct trace_kind *kind, const struct sample *who,
			const struct histogram *histogram)
{
	struct report *report = to;
	struct sample sample = *who;

	sample.now.state = STATE_ON;
	sample.scan.weight_us = kind->measure == TRACE_TIME    ? histogram->sum_ns / NS_PER_US
				: kind->measure == TRACE_COUNT ? histogram_count(histogram)
							       : histogram->sum_ns;
	report->tally.samples++;
	report_add(report, &sample, EXACT_NOTE_NONE);
}

static int stacks_collect(void *state, struct report *report, bool all)
{
	struct source *source = report->source;

	(void)state;
	return source->host->traced(source, all, column_list_needs(&report->list), traced_take,
				    report, report->e);
}

const struct report_part probe_stacks_part = {
	.begin = stacks_begin, .take = stacks_take, .collect = stacks_collect};
