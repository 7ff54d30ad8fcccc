/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events for people, longest first; for programs, as they come. */
#include "render/renderer.h"
#include "base/clock.h"
#include "base/names.h"
#include "report/distribution.h"
#include "report/event_list.h"
#include "report/report.h"
#include "sample/wait_rule.h"

#include <string.h>

#define STUCK_US (10 * US_PER_SECOND)

struct events {
	struct event_list list;
	struct keyed stuck; /* int64_t by tid: since when a thread is in D that was an event */
	const struct trace_kind *stuck_kind; /* NULL: such threads are no events */
	struct sleep_stacks sleeps;	     /* facts of the waits among the events */
	struct report *report;
	struct distribution_table *sums_to; /* that sums up events; NULL: there is none */
	bool sleeps_wanted;
	bool listed; /* some are not only summed up */
	bool sums;   /* sleeps are summed up by stack */
};

void interval_add_events(struct text *out, const struct interval *interval, void *state)
{
	struct event_list *events = state;
	size_t rows = events->count;
	struct interval table = *interval;
	struct grid grid = {0};
	struct text line = {0};

	if (interval->row_limit && rows > interval->row_limit)
		rows = interval->row_limit;
	if (events->slower_us)
		text_add_format(&line,
				"slower than %.10g ms: ", (double)events->slower_us / US_PER_MS);
	text_add_format(&line, "%zu single event%s", events->count, events->count == 1 ? "" : "s");
	if (rows < events->count)
		text_add_format(&line, ", of which the longest %zu", rows);
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, text_string(&line));
	event_grid_fill(events, &grid);
	table.grid = &grid;
	if (rows)
		interval_add_table(out, &table, rows);
	grid_done(&grid);
	text_done(&line);
}

/* True if only events are written, and no samples. */
static bool events_only(const struct report *report)
{
	return !report->grouped && !report->record;
}

/* Finds which facts single waits take from samples within them. */
static void sleeps_choose(struct events *events)
{
	struct report *report = events->report;
	uint64_t needs = column_list_needs(&events->list.list);
	bool stacks = false;

	if (!events_only(report))
		needs |= column_list_needs(&report->list) |
			 (report->config->stacks ? NEED_STACK : 0);
	for (size_t i = 0; report->slower_us && i < report->kind_count; i++) {
		stacks |= report->kinds[i]->sleeps &&
			  needs & (NEED_STACK | NEED_USTACK | NEED_KSTACK);
		/* samples show in which call threads are idle */
		events->sleeps_wanted |= report->kinds[i]->splits ||
					 (report->kinds[i]->runnable && needs & NEED_RUNQ_WHY);
	}
	events->sleeps_wanted |= stacks;
	events->sums = stacks && report->config->stacks;
	if (!events_only(report))
		return;
	report->filter.no_samples = !events->sleeps_wanted && !events->stuck_kind;
	report->filter.all_states |= events->sleeps_wanted;
	report->filter.off_cpu |= events->sleeps_wanted;
}

static int events_begin(void *state, struct report *report)
{
	const char *columns = report->query.columns;
	struct events *events = state;
	struct text names = {0};
	int err;

	if (!report->events)
		return 0;
	events->report = report;
	events->sums_to = distributions_of(report);
	text_add_string(&names, columns ? columns : EVENT_COLUMNS_DEFAULT);
	if (report->slower_us && !columns)
		text_add_string(&names, "," EVENT_COLUMNS_SLOW);
	for (size_t i = 0; i < report->kind_count; i++)
		if ((report->slower_us || report->kinds[i]->single) && report->kinds[i]->columns)
			text_add_format(&names, ",%s", report->kinds[i]->columns);
	err = event_list_init(&events->list, text_string(&names), report->query.more_columns,
			      report->e);
	text_done(&names);
	for (size_t i = 0; i < report->kind_count; i++)
		if (report->kinds[i]->stuck)
			events->stuck_kind = report->kinds[i];
	for (size_t i = 0; i < report->kind_count; i++)
		events->listed |=
			!events->sums_to || report->slower_us || !report->kinds[i]->summed;
	events->list.slower_us = report->slower_us;
	if (err)
		return err;
	sleeps_choose(events);
	return 1;
}

static uint64_t events_needs(const void *state)
{
	const struct events *events = state;

	return events_only(events->report) ||
			       (events->stuck_kind && !events->report->events_unasked)
		       ? column_list_needs(&events->list.list) |
				 (events->stuck_kind ? NEED_WAIT_CLASS : 0)
		       : 0;
}

/* What a thread is stuck in that waits for long; NULL: in nothing. Threads wait in S for file
 * systems whose server is a process, and in D for those of a disk or another host. */
static const char *stuck_outcome(const struct sample *sample)
{
	if (sample->now.state == STATE_DISK)
		return "stuck in D";
	return sample->now.state == STATE_SLEEP &&
			       wait_class_traits(sample->wait.why) & WAIT_FOR_FILE
		       ? "stuck on a file"
		       : NULL;
}

/* Adds an event if the thread has been stuck for long, once for each wait. */
static void stuck_take(struct events *events, const struct sample *sample)
{
	struct sample stuck = *sample;
	const char *outcome;
	int64_t *known, since_us;

	if (sample->now.state_us == ABSENT || sample->now.state_us < STUCK_US)
		return;
	outcome = stuck_outcome(sample);
	if (!outcome)
		return;
	if (events->stuck.count == SLEEP_STACKS_MAX)
		keyed_empty(&events->stuck);
	since_us = sample->scan.time_us - sample->now.state_us;
	known = keyed_put(&events->stuck, sizeof(*known), (uint64_t)sample->thread.tid, NULL);
	if (since_us - *known < US_PER_SECOND) /* the clock may be set while it waits */
		return;
	*known = since_us;
	stuck.event.outcome = name_of_string(outcome);
	event_list_add(&events->list, events->stuck_kind, &stuck, sample->now.state_us * NS_PER_US);
}

/* Notes the stacks of sleeps, before the events that end them. */
static bool events_take(void *state, struct report *report, const struct scan *batch)
{
	struct events *events = state;

	for (size_t i = 0; events->sleeps_wanted && i < batch->count; i++)
		sleep_stacks_note(&events->sleeps, &batch->samples[i]);
	/* a recorder has taken those of its samples */
	for (size_t i = 0; events->stuck_kind && report->source->host && i < batch->count; i++)
		stuck_take(events, &batch->samples[i]);
	return false;
}

static void event_take(void *to, const struct trace_kind *kind, const struct sample *who,
		       int64_t duration_ns)
{
	struct events *events = to;
	struct sample reported = *who;

	if (events->sleeps_wanted)
		sleep_stacks_fill(&events->sleeps, &reported, kind->runnable, duration_ns);
	if (kind->sums && events->sums_to)
		distribution_add_event(events->sums_to, kind, &reported, duration_ns);
	if (!kind->summed || !events->sums_to)
		event_list_add(&events->list, kind, &reported, duration_ns);
}

static int events_collect(void *state, struct report *report, bool all)
{
	struct events *events = state;
	uint64_t needs = column_list_needs(&events->list.list);

	if (events->sums_to)
		needs |= distribution_table_needs(events->sums_to);
	if (report->source->host)
		report->source->host->events(report->source, all, needs, event_take, events);
	report_miss(report, "single events dropped: more than tsnap keeps", events->list.refused);
	events->list.refused = 0;
	if (!events_only(report))
		return 0;
	event_rows_fill(&events->list, &report->grid);
	report->renderer->add(&report->out, report->interval);
	event_list_clear(&events->list);
	return 0;
}

static void events_below(struct text *out, const struct interval *interval, void *state)
{
	struct events *events = state;

	if (!events->listed)
		return;
	interval_add_events(out, interval, &events->list);
	if (events->sums)
		interval_add_sleep_sums(out, interval, &events->list);
}

static void events_clear(void *state)
{
	struct events *events = state;

	event_list_clear(&events->list);
}

static void events_release(void *state)
{
	struct events *events = state;

	sleep_stacks_clear(&events->sleeps);
}

static void events_done(void *state)
{
	struct events *events = state;

	event_list_done(&events->list);
	sleep_stacks_done(&events->sleeps);
	keyed_done(&events->stuck);
}

const struct report_part events_part = {.bytes = sizeof(struct events),
					.begin = events_begin,
					.needs = events_needs,
					.take = events_take,
					.collect = events_collect,
					.below = events_below,
					.clear = events_clear,
					.release = events_release,
					.done = events_done};

struct event_list *events_list(const struct report *report)
{
	struct events *events = report_state(report, &events_part);

	return events ? &events->list : NULL;
}

void events_add(struct report *report, const struct event *event)
{
	struct events *events = report_state(report, &events_part);

	for (size_t i = 0; i < report->kind_count; i++)
		if (!strcmp(report->kinds[i]->name, event->trace))
			event_take(events, report->kinds[i], &event->who, event->duration_ns);
}
