/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong in the window: the first findings above the table, all of them as a list (!). Enter
 * shows the threads of one, in the columns of the command that a report names with it.
 *
 * They are of all samples of the window's last minute, whatever the view's filter is, and as texts,
 * because the samples may go. Finding takes a while where many threads are active, so that it is
 * done again only when a hundred times as long has passed.
 */
#include "screen/shown.h"
#include "screen/command.h"
#include "screen/list.h"
#include "screen/saved.h"
#include "base/clock.h"
#include "base/memory.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES_MOST 20000 /* some 20 ms: of more, every second or further scan is taken */
#define WINDOW_MOST_US (60 * US_PER_SECOND)
#define PAUSE_TIMES 100 /* at most 1 % of a CPU */
#define BESIDE 13	/* columns of "1. " and "!: 9 more" */
#define WAITERS_MAX 8	/* names in the filter of the threads */
#define COLUMNS_DEFAULT "pid,comm,state,syscall,waits_on,chain"

/* What a window's samples are gathered for. */
struct gathering {
	struct findings findings;
	struct filter work; /* idle threads may be sampled, too */
	struct tally tally;
	uint64_t samples, scans; /* in the window; so far */
	bool taken;		 /* the present scan is taken */
};

static void samples_count(void *to, const struct history_scan *scan)
{
	struct gathering *gathering = to;

	gathering->samples += scan->samples;
}

static void scan_take(void *to, const struct history_scan *scan)
{
	struct gathering *gathering = to;

	gathering->taken = gathering->scans++ % (gathering->samples / SAMPLES_MOST + 1) == 0;
	if (!gathering->taken)
		return;
	tally_add_history_scan(&gathering->tally, scan);
	findings_end_scan(&gathering->findings, (int64_t)scan->threads);
}

static void sample_take(void *to, const struct sample *sample)
{
	struct gathering *gathering = to;

	if (gathering->taken && filter_accepts(&gathering->work, sample))
		findings_add(&gathering->findings, sample, EXACT_NOTE_NONE);
}

static void name_add(struct text *filter, const struct finding_name *name)
{
	text_add_string(filter, filter->length ? " || " : "");
	if (name->pid != ABSENT) {
		text_add_format(filter, "pid=%lld", (long long)name->pid);
		return;
	}
	add_condition(filter, sample_column_find("commsum"), (union value){.text = name->name},
		      true);
	text_add_string(filter, " || ");
	add_condition(filter, sample_column_find("comm"), (union value){.text = name->name}, true);
}

/* Makes the filter of the finding's threads: those that wait, or those that are on a CPU where the
 * row's command is about these. */
static void filter_make(struct text *filter, const struct finding *finding)
{
	const struct keyed *waiters = &finding->parties[PARTY_WAITERS];
	const struct finding_name *names = waiters->rows;
	const char *condition = strstr(finding->row->command, "--filter ");

	if (strstr(finding->row->command, "--on-cpu")) {
		text_add_string(filter, "state=ON");
		return;
	}
	for (size_t i = 0; i < waiters->count && i < WAITERS_MAX; i++)
		if (names[i].name)
			name_add(filter, &names[i]);
	if (!condition)
		return;
	condition += strlen("--filter ");
	if (filter->length) {
		struct text names_alone = *filter;

		*filter = (struct text){0};
		text_add_format(filter, "(%s) && ", text_string(&names_alone));
		text_done(&names_alone);
	}
	text_add(filter, condition, strcspn(condition, " "));
}

/* Takes the columns of the row's command. */
static void columns_make(struct text *columns, const struct finding_row *row)
{
	const char *given = strstr(row->command, "-g ");

	if (given)
		text_add(columns, given + 3, strcspn(given + 3, " "));
	else
		text_add_string(columns, COLUMNS_DEFAULT);
}

static void line_make(struct finding_line *line, const struct interval *interval,
		      const struct findings *findings, const struct finding *finding)
{
	struct text text = {0};

	interval_add_finding(&text, interval, findings, finding,
			     interval->width > BESIDE ? interval->width - BESIDE : 0);
	line->sentence = text_take(&text);
	interval_add_evidence(&text, interval, findings, finding);
	line->evidence = text_take(&text);
	filter_make(&text, finding);
	line->filter = text_take(&text);
	columns_make(&text, finding->row);
	line->columns = text_take(&text);
	line->name = finding->row->name;
}

void finding_lines_done(struct finding_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->items[i].sentence);
		free(lines->items[i].evidence);
		free(lines->items[i].filter);
		free(lines->items[i].columns);
	}
	free(lines->items);
	*lines = (struct finding_lines){0};
}

/* Finds what is wrong between these times. */
static void lines_make(struct shown *shown, int64_t from_us, int64_t until_us, size_t width)
{
	struct gathering *gathering = memory_get(sizeof(*gathering));
	struct history_visitor counter = {.scan = samples_count, .to = gathering},
			       visitor = {
				       .scan = scan_take, .sample = sample_take, .to = gathering};
	struct source_status *status = memory_get(sizeof(*status));
	struct findings *findings = &gathering->findings;
	struct finding_lines *lines = &shown->findings;
	struct interval interval = {.tally = &gathering->tally,
				    .status = status,
				    .recording = shown->source.recording,
				    .width = width};

	findings_init(findings, NULL);
	findings->of_all = !shown->source.base && !shown->source.recording;
	history_visit(&shown->history, from_us, until_us, &counter);
	history_visit(&shown->history, from_us, until_us, &visitor);
	/* quotas and limits are counted since the start, not in the window */
	*status = shown->source.status;
	status->quota_count = status->quotas_more = status->io_limit_count = 0;
	if (shown->source.host_log)
		host_log_take(shown->source.host_log, from_us, until_us,
			      gathering->tally.elapsed_us, status);
	else
		status->device_count = status->unread_count = status->runtime_count = 0;
	findings_fill(findings, &gathering->tally, status, NULL);
	lines->items = memory_get(findings->count * sizeof(*lines->items));
	for (; lines->count < findings->count; lines->count++)
		line_make(&lines->items[lines->count], &interval, findings,
			  finding_at(findings, lines->count));
	findings_done(findings);
	free(gathering);
	free(status);
}

void finding_lines_fill(struct shown *shown, const struct question *question, size_t columns)
{
	struct finding_lines *lines = &shown->findings;
	int64_t now_ns = clock_monotonic_ns();
	int64_t from_us = shown->from_us;

	if (lines->columns == columns && lines->until_us == question->until_us &&
	    now_ns < lines->due_ns)
		return;
	if (from_us < shown->until_us - WINDOW_MOST_US)
		from_us = shown->until_us - WINDOW_MOST_US;
	finding_lines_done(lines);
	lines_make(shown, from_us, shown->until_us, columns);
	lines->columns = columns;
	lines->until_us = question->until_us;
	lines->due_ns = now_ns + PAUSE_TIMES * (clock_monotonic_ns() - now_ns);
}

uint64_t finding_lines_needs(void)
{
	struct findings findings;
	uint64_t needs;

	findings_init(&findings, NULL);
	needs = findings_needs(&findings);
	findings_done(&findings);
	return needs;
}

/* --- the list */

static size_t lines_count(const struct view *view, const struct shown *shown)
{
	return shown->findings.count;
}

static void lines_item(const struct view *view, const struct shown *shown, size_t item,
		       struct text *name, struct text *help)
{
	text_add_format(help, "%zu. %s", item + 1, shown->findings.items[item].sentence);
}

static void lines_detail(const struct view *view, const struct shown *shown, size_t item,
			 struct text *text)
{
	text_add_string(text, shown->findings.items[item].evidence);
}

static void lines_header(const struct view *view, const struct shown *shown, struct text *title)
{
	if (!shown->findings.count)
		text_add_string(title, ": nothing stands out in this window");
}

void finding_choose(struct view *view, const struct shown *shown, size_t item)
{
	const struct finding_line *line;
	struct saved_view rows;

	if (item >= shown->findings.count)
		return;
	line = &shown->findings.items[item];
	rows = (struct saved_view){
		.name = line->name, .columns = line->columns, .filter = line->filter};
	if (!saved_view_show(view, shown, &rows, "finding"))
		view_say(view, true, "The filter of these threads gets too long");
}

static const struct list_kind list_findings = {
	.title = "Findings",
	.hint = "Enter shows its threads, Esc closes",
	.count = lines_count,
	.item = lines_item,
	.choose = finding_choose,
	.wide = true,
	.half = true,
	.header = lines_header,
	.detail = lines_detail,
};

void command_findings(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_findings);
}
