/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events of a recording (--replay with --trace): they are read at once, and each is given to
 * the report when the samples of its time have been.
 */
#include "cli/part_table.h"
#include "cli/config.h"
#include "base/memory.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/event_list.h"
#include "sample/filter/expression.h"

#include <stdlib.h>
#include <string.h>

struct recorded_events {
	struct report *report;
	struct event *events;
	size_t count, capacity, given;
	int64_t refused; /* events beyond EVENTS_KEPT_MAX */
};

static int events_begin(void *state, struct report *report)
{
	struct recorded_events *recorded = state;

	recorded->report = report;
	return report->events && report->options->replay &&
	       strcmp(report->options->replay, "-") != 0;
}

static const struct trace_kind *kind_of(const struct report *report, const struct event *event)
{
	for (size_t i = 0; i < report->kind_count; i++)
		if (!strcmp(report->kinds[i]->name, event->trace))
			return report->kinds[i];
	return NULL;
}

static void event_read(void *to, const struct event *event)
{
	struct recorded_events *recorded = to;
	const struct report *report = recorded->report;
	const struct trace_kind *kind = kind_of(report, event);

	if (!kind || !recording_part_has(&report->options->part, event->who.scan.time_us) ||
	    filter_excludes(&report->filter, event->who.thread.pid, event->who.thread.tid) ||
	    filter_eval_thread(&report->filter, &event->who,
			       KNOWN_IDS | KNOWN_EVENT | NEED_COMM | kind->known) ==
		    VERDICT_REFUSED)
		return;
	if (recorded->count == EVENTS_KEPT_MAX) {
		recorded->refused++;
		return;
	}
	recorded->events = memory_grow(recorded->events, &recorded->capacity, recorded->count + 1,
				       sizeof(*recorded->events));
	recorded->events[recorded->count++] = *event;
}

static int events_open(void *state, struct report *report)
{
	struct recorded_events *recorded = state;
	const char **paths = config_replay_paths(report->options);
	int err = recording_events(paths, &report->options->part, event_read, recorded, report->e);

	free(paths);
	report_miss(report, "single events of the recording beyond those that tsnap keeps",
		    recorded->refused);
	return err;
}

/* all: without intervals also those after the last sample. */
static int events_collect(void *state, struct report *report, bool all)
{
	struct recorded_events *recorded = state;
	const bool rest = all && !report->options->interval_us;

	for (; recorded->given < recorded->count; recorded->given++) {
		const struct event *event = &recorded->events[recorded->given];

		if (!rest && event->who.scan.time_us > report->scan->time_us)
			break;
		events_add(report, event);
	}
	return 0;
}

static void events_done(void *state)
{
	struct recorded_events *recorded = state;

	free(recorded->events);
}

const struct report_part recorded_events_part = {.bytes = sizeof(struct recorded_events),
						 .begin = events_begin,
						 .open = events_open,
						 .collect = events_collect,
						 .done = events_done};
