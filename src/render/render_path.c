/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --critical-path: takes samples of all threads, and adds those that the process's paths lead to.
 */
#include "render/renderer.h"
#include "report/critical_path.h"
#include "report/report.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct path {
	struct critical_path path;
	struct filter own; /* threads of the process */
	const char *of;	   /* its name, as typed */
};

/* Reports a process that does not exist, before anything is compiled. */
static int process_check(const char *who, struct error *e)
{
	if (who[strspn(who, "0123456789")] || !kill((pid_t)strtol(who, NULL, 10), 0) ||
	    errno != ESRCH)
		return 0;
	return error_set(e, ESRCH, EXIT_FAILED,
			 "--critical-path %s: there is no process %s; ps -e lists all processes",
			 who, who);
}

static int path_begin(void *state, struct report *report)
{
	const char *who = report->config->critical_path;
	struct path *path = state;
	struct error *e = report->e;

	if (!who)
		return 0;
	path->of = who;
	path->own.all_states = true;
	path->path.ordered = !report->grouped;
	if (!filter_set_process(&path->own, who, e))
		return process_check(who, e) ? -ESRCH : 1;
	error_done(e);
	*e = (struct error){0};
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--critical-path %s: give ids (positive numbers) or patterns of "
			 "names, separated by commas",
			 who);
}

static uint64_t path_needs(const void *state)
{
	const struct path *path = state;

	return sample_needs_close(NEED_PATH | NEED_WAITS | filter_needs(&path->own));
}

static bool path_take(void *state, struct report *report, const struct scan *batch)
{
	struct path *path = state;

	report->tally.samples -= (int64_t)batch->count; /* samples of paths count instead */
	for (size_t i = 0; i < batch->count; i++) {
		const struct sample *sample = &batch->samples[i];
		bool own = filter_accepts(&path->own, sample);

		if (own)
			report->source->host->follow(report->source, sample->thread.tid);
		path_notes_add(&path->path.notes, batch, sample, own);
	}
	return true;
}

static void sample_take(void *to, const struct sample *sample)
{
	struct report *report = to;

	report->tally.samples++;
	report_add(report, sample, EXACT_NOTE_NONE);
}

static void path_save(void *state, struct report *report)
{
	struct path *path = state;

	critical_path_settle(&path->path, sample_take, report);
}

static void wakeup_take(void *to, const struct wakeup *wakeup)
{
	path_notes_wakeup(to, wakeup);
}

static int path_collect(void *state, struct report *report, bool all)
{
	struct critical_path *path = &((struct path *)state)->path;
	struct source *source = report->source;
	int64_t until_ns;

	if (!all) {
		until_ns = source->host->wakeups(source, wakeup_take, &path->notes);
		critical_path_end_scan(path, until_ns, sample_take, report);
		for (size_t i = 0; i < path->led_to_count; i++)
			source->host->follow(source, path->led_to[i]);
		path->led_to_count = 0;
	}
	if (all || (source->host && source->host->crowded(source)))
		critical_path_settle(path, sample_take, report);
	return 0;
}

static bool path_holds(const void *state)
{
	const struct path *path = state;

	return path->path.notes.scan_count;
}

static void path_head(struct text *line, const struct interval *interval, void *state)
{
	const struct path *path = state;

	text_add_string(line, "Critical path of ");
	text_add_printable(line, path->of);
	text_add_string(line, ": the time of its threads (by samples), by the thread that each "
			      "wait was for in the end, and what that one did meanwhile");
}

static void path_instead(struct text *out, const struct interval *interval, void *state)
{
	const struct path *path = state;
	struct text line = {0};

	text_add_string(&line, "No samples: no thread of ");
	text_add_printable(&line, path->of);
	text_add_string(&line, " was seen.");
	interval_add_line(out, interval, &line);
}

static void path_done(void *state)
{
	struct path *path = state;

	critical_path_done(&path->path);
	filter_done(&path->own);
}

const struct report_part path_part = {.bytes = sizeof(struct path),
				      .begin = path_begin,
				      .needs = path_needs,
				      .take = path_take,
				      .collect = path_collect,
				      .holds = path_holds,
				      .head = path_head,
				      .instead = path_instead,
				      .save = path_save,
				      .done = path_done};
