/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings of each minute, beside the samples of a recording: found on the host itself, they know
 * its quotas and limits. With --when 'finding=...' those of ten seconds decide whether the scans
 * around are recorded. Samples are counted: exact times cost more than a recorder may.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "base/clock.h"
#include "cli/record.h"
#include "recording/finding_rows.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/status_since.h"

#include <stdlib.h>

#define STEP_US (60 * US_PER_SECOND)
#define STEP_OF_CONDITION_US (10 * US_PER_SECOND)

struct recorded_findings {
	struct report *report;
	struct findings findings;
	struct filter work; /* recordings with -a have idle threads, too */
	struct tally tally;
	struct source_status before, status; /* as of the last step; since then */
	int64_t step_us, number;	     /* the present step, since 1970 */
};

static int recorded_begin(void *state, struct report *report)
{
	struct recorded_findings *recorded = state;

	/* the default columns have what findings need; others may cost much less */
	if (!report->record || (!report->config->condition.given &&
				(report->query.columns || !filter_wants_work(&report->filter))))
		return 0;
	recorded->report = report;
	recorded->step_us = report->config->condition.given ? STEP_OF_CONDITION_US : STEP_US;
	findings_init(&recorded->findings, NULL);
	return 1;
}

static uint64_t recorded_needs(const void *state)
{
	const struct recorded_findings *recorded = state;

	return findings_needs(&recorded->findings) | filter_needs(&recorded->work);
}

static int recorded_open(void *state, struct report *report)
{
	struct recorded_findings *recorded = state;

	report->source->describes_host = true;
	report->source->describe(report->source, &recorded->before);
	return 0;
}

static bool recorded_take(void *state, struct report *report, const struct scan *batch)
{
	struct recorded_findings *recorded = state;

	(void)report;
	for (size_t i = 0; i < batch->count; i++)
		if (filter_accepts(&recorded->work, &batch->samples[i]))
			findings_add(&recorded->findings, &batch->samples[i], EXACT_NOTE_NONE);
	return false;
}

void finding_entry_fill(struct finding_entry *entry, const struct finding *finding)
{
	/* others wait for whoever has a CPU or a disk just then */
	bool blames = finding->row->of_roots || finding_row_of_counts(finding->row->name);
	const struct finding_name *culprit = blames ? finding_first(finding, PARTY_CULPRITS) : NULL,
				  *thing = finding_first(finding, PARTY_THINGS);

	*entry = (struct finding_entry){
		.finding = finding->row->name,
		.certainty = finding_certainty(finding),
		.time_us = finding->weight_us,
		.longest_us = finding->longest_us,
		.culprit = culprit ? culprit->name : NULL,
		.pid = culprit && culprit->pid != ABSENT ? culprit->pid : 0,
		.thing = thing ? thing->name : NULL,
	};
}

/* Adds the row of a finding; NULL: that there was none. */
static void row_add(struct recorded_findings *recorded, const struct interval *interval,
		    const struct finding *finding, size_t rank)
{
	struct text text = {0};
	struct finding_entry entry = {0};

	if (finding) {
		finding_entry_fill(&entry, finding);
		interval_add_finding(&text, interval, &recorded->findings, finding, 0);
		interval_add_device(&text, interval, &recorded->findings, finding);
		entry.text = text_string(&text);
	}
	entry.begin_us = recorded->tally.from_us;
	entry.end_us = recorded->tally.until_us;
	entry.rank = (int64_t)rank;
	finding_row_add(record_rows(recorded->report, RECORD_FINDINGS), &entry);
	text_done(&text);
}

/* Ends the present step. */
static void step_end(struct recorded_findings *recorded)
{
	struct report *report = recorded->report;
	struct findings *findings = &recorded->findings;
	struct interval interval = {
		.report = report, .tally = &recorded->tally, .status = &recorded->status};
	struct source_status now;

	report->source->describe(report->source, &now);
	recorded->status = now;
	status_subtract(&recorded->status, &recorded->before);
	recorded->before = now;
	findings_fill(findings, &recorded->tally, &recorded->status, report->source);
	if (!findings->count)
		row_add(recorded, &interval, NULL, 0);
	for (size_t i = 0; i < findings->count; i++)
		row_add(recorded, &interval, finding_at(findings, i), i + 1);
	if (report->config->condition.given &&
	    finding_condition_met(&report->config->condition, findings))
		report->moment = true;
	findings_clear(findings);
	recorded->tally = (struct tally){0};
}

static int recorded_collect(void *state, struct report *report, bool all)
{
	struct recorded_findings *recorded = state;
	const struct scan *scan = report->scan;

	if (!all) {
		tally_add(&recorded->tally, scan);
		findings_end_scan(&recorded->findings, (int64_t)scan->threads);
		if (recorded->tally.scans == 1)
			recorded->number = scan->time_us / recorded->step_us;
		if (scan->time_us / recorded->step_us == recorded->number)
			return 0;
	}
	if (recorded->tally.scans)
		step_end(recorded);
	return 0;
}

static bool recorded_holds(const void *state)
{
	const struct recorded_findings *recorded = state;

	return recorded->findings.groups.count;
}

static void recorded_done(void *state)
{
	struct recorded_findings *recorded = state;

	findings_done(&recorded->findings);
}

const struct report_part recorded_findings_part = {.bytes = sizeof(struct recorded_findings),
						   .begin = recorded_begin,
						   .needs = recorded_needs,
						   .open = recorded_open,
						   .take = recorded_take,
						   .collect = recorded_collect,
						   .holds = recorded_holds,
						   .done = recorded_done};
