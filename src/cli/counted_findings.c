/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings of a replay that no sample shows: the recorder made them of what its host counts, as
 * requests that nobody reads or stops for the collection of garbage (recorded_findings.c). Those of
 * the replayed time stand beside what is found here, each with the words of its worst step.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "base/memory.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 65536 /* steps and findings; a day of minutes has 1440 steps */

/* A step of the recording, or a finding of one. */
struct counted_entry {
	int64_t begin_us, end_us, longest_us, pid;
	const struct finding_row *row; /* NULL: a step */
	bool certain;
	char *culprit, *thing, *text;
};

struct counted_findings {
	struct counted_entry *entries;
	size_t count, capacity;
	int64_t refused;
	struct keyed found; /* struct finding_recorded of the interval, by row and name */
};

static int counted_begin(void *state, struct report *report)
{
	const struct config *config = report->options;

	(void)state;
	return report->config->findings && config->replay && strcmp(config->replay, "-") != 0 &&
	       !query_selects(&report->query);
}

/* Returns a copy of a recorded text; NULL for "". */
static char *text_copy(const char *recorded)
{
	struct text original = {0};

	if (!*recorded)
		return NULL;
	text_add_original(&original, recorded);
	return text_take(&original);
}

static void entry_put(struct counted_findings *counted, const struct counted_entry *entry)
{
	counted->entries = memory_grow(counted->entries, &counted->capacity, counted->count + 1,
				       sizeof(*counted->entries));
	counted->entries[counted->count++] = *entry;
}

static void entry_take(void *to, const struct finding_entry *entry)
{
	struct counted_findings *counted = to;
	const struct finding_row *row = finding_row_of_counts(entry->finding);
	struct counted_entry taken = {.begin_us = entry->begin_us, .end_us = entry->end_us};

	if (entry->end_us <= entry->begin_us || (entry->rank > 1 && !row))
		return;
	if (counted->count + 2 > ENTRIES_MAX) {
		counted->refused++;
		return;
	}
	if (entry->rank <= 1)
		entry_put(counted, &taken);
	if (!row || !*entry->text)
		return;
	taken.row = row;
	taken.longest_us = entry->longest_us;
	taken.certain = !strcmp(entry->certainty, "certain");
	taken.pid = entry->pid ? entry->pid : ABSENT;
	taken.culprit = text_copy(entry->culprit);
	taken.thing = text_copy(entry->thing);
	taken.text = text_copy(entry->text);
	entry_put(counted, &taken);
}

static int counted_open(void *state, struct report *report)
{
	struct counted_findings *counted = state;
	const struct config *config = report->options;
	const char **paths = config_replay_paths(config);
	struct error unsaid = {0};

	recording_findings(paths, &config->part, entry_take, counted, &unsaid);
	error_done(&unsaid);
	free(paths);
	report_miss(report, "findings of a recording beyond those that tsnap keeps",
		    counted->refused);
	return 0;
}

static uint64_t text_key_of(const char *text)
{
	return text ? hash_bytes(text, strlen(text)) : 0;
}

/* Those of a row with the same process and thing are one. */
static uint64_t key_of(const struct counted_entry *entry)
{
	return hash_u64(text_key_of(entry->thing) +
			hash_u64((uint64_t)entry->pid + text_key_of(entry->culprit)));
}

static void finding_take(struct counted_findings *counted, const struct counted_entry *entry)
{
	uint64_t key = key_of(entry);
	bool added;
	struct finding_recorded *found =
		keyed_put(&counted->found, sizeof(*found),
			  hash_u64(key + (uint64_t)(entry->row - finding_rows)), &added);

	if (added)
		*found = (struct finding_recorded){.row = entry->row,
						   .key = key,
						   .pid = entry->pid,
						   .from_us = entry->begin_us,
						   .certain = true};
	found->found_us = sum(found->found_us, entry->end_us - entry->begin_us);
	found->until_us = entry->end_us;
	found->certain &= entry->certain;
	if (!added && entry->longest_us < found->longest_us)
		return;
	found->longest_us = entry->longest_us;
	found->culprit = entry->culprit;
	found->thing = entry->thing;
	found->text = entry->text;
}

/* Gives the findings what was recorded of the interval. */
static void counted_end(void *state, struct report *report)
{
	struct counted_findings *counted = state;
	struct findings *findings = report_state(report, &findings_part);
	struct finding_recorded *found;
	int64_t of_us = 0;

	keyed_empty(&counted->found);
	for (size_t i = 0; i < counted->count; i++) {
		const struct counted_entry *entry = &counted->entries[i];
		int64_t middle_us = entry->begin_us + (entry->end_us - entry->begin_us) / 2;

		if (!report->tally.scans || middle_us < report->tally.from_us ||
		    middle_us >= report->tally.until_us)
			continue;
		if (entry->row)
			finding_take(counted, entry);
		else
			of_us = sum(of_us, entry->end_us - entry->begin_us);
	}
	found = counted->found.rows;
	for (size_t i = 0; i < counted->found.count; i++)
		found[i].of_us = of_us;
	findings->recorded = found;
	findings->recorded_count = counted->found.count;
}

static void counted_done(void *state)
{
	struct counted_findings *counted = state;

	for (size_t i = 0; i < counted->count; i++) {
		free(counted->entries[i].culprit);
		free(counted->entries[i].thing);
		free(counted->entries[i].text);
	}
	free(counted->entries);
	keyed_done(&counted->found);
}

const struct report_part counted_findings_part = {.bytes = sizeof(struct counted_findings),
						  .begin = counted_begin,
						  .open = counted_open,
						  .end = counted_end,
						  .done = counted_done};
