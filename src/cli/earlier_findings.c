/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says beside a finding when it was found before: of this host by the recording that the service
 * keeps; in a replay of a later part, by what was recorded until then.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/record.h"
#include "recording/found_before.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/findings.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_DIRECTORY "/var/log/tsnap" /* of ../packaging/service/tsnap.conf */
#define WEEK_US (604800 * US_PER_SECOND)

struct earlier_findings {
	struct found_before before;
	struct text *words; /* of each finding of the interval */
	size_t count;
};

static int earlier_begin(void *state, struct report *report)
{
	const struct config *config = report->options;

	(void)state;
	if (!config->report.findings ||
	    (report->renderer != &renderer_report && report->renderer != &renderer_html &&
	     report->renderer != &renderer_json_findings))
		return 0;
	return !config->replay || config->part.from_us != ABSENT;
}

/* True if nobody but root, or who runs tsnap, can have written what is there. */
static bool directory_trusted(const char *path)
{
	struct stat there;

	return !lstat(path, &there) && S_ISDIR(there.st_mode) &&
	       (!there.st_uid || there.st_uid == geteuid()) &&
	       !(there.st_mode & (S_IWGRP | S_IWOTH));
}

/* The sandbox is entered: recordings are read in it. */
static int earlier_open(void *state, struct report *report)
{
	static const char *const service[] = {SERVICE_DIRECTORY, NULL};
	struct earlier_findings *earlier = state;
	const struct config *config = report->options;
	int64_t until_us = config->replay ? config->part.from_us : clock_utc_us();
	struct recording_part part = {.from_us = until_us - WEEK_US, .until_us = until_us};
	const char **replayed = config->replay ? config_replay_paths(config) : NULL;
	struct error unsaid = {0};

	if (replayed || directory_trusted(SERVICE_DIRECTORY))
		recording_findings(replayed ? replayed : service, &part, found_before_take,
				   &earlier->before, &unsaid);
	error_done(&unsaid);
	free(replayed);
	return 0;
}

static void earlier_clear(void *state)
{
	struct earlier_findings *earlier = state;

	for (size_t i = 0; i < earlier->count; i++)
		text_done(&earlier->words[i]);
	free(earlier->words);
	earlier->words = NULL;
	earlier->count = 0;
}

static void earlier_end(void *state, struct report *report)
{
	struct earlier_findings *earlier = state;
	struct findings *findings = report_state(report, &findings_part);
	struct finding *rows = findings->found.rows;

	earlier->count = findings->count;
	earlier->words = memory_get(findings->count * sizeof(*earlier->words));
	for (size_t i = 0; i < findings->count; i++) {
		struct text *words = &earlier->words[i];
		struct finding_entry entry;

		finding_entry_fill(&entry, &rows[i]);
		found_before_add(words, &earlier->before, &entry, report->tally.until_us);
		rows[i].before = words->length ? text_string(words) : NULL;
	}
}

static void earlier_done(void *state)
{
	struct earlier_findings *earlier = state;

	earlier_clear(earlier);
	found_before_done(&earlier->before);
}

const struct report_part earlier_findings_part = {.bytes = sizeof(struct earlier_findings),
						  .begin = earlier_begin,
						  .open = earlier_open,
						  .end = earlier_end,
						  .clear = earlier_clear,
						  .done = earlier_done};
