/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole program, for a report, rows, stacks and recordings:
 *
 *   options --> the parts that they want (part_table.c), columns and filter (run_columns.c)
 *   parts   --> what samples must have --> a source: this host, or a recording
 *   each scan:            source --> parts take its samples, and what the source has beside them
 *   an interval's end:    parts fill their rows --> the renderer writes a text --> standard output
 *
 * Rows are written, and a recording is, with each scan: there is no interval then. The source has
 * applied the filter and filled what the columns need. The screen (--top) has a loop of its own in
 * top.c: it keeps scans for as long as they fit, and draws when somebody looks, not when an
 * interval ends.
 */
#include "cli/run.h"
#include "keeper/keeper.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/signals.h"
#include "cli/part_table.h"
#include "cli/run_columns.h"
#include "live/trace_table.h"
#include "report/event_list.h"
#include "report/groups.h"
#include "report/status_since.h"
#include "report/value.h"
#include "render/renderer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_ROWS 20 /* rows of a table on a terminal, unless its height allows more */
#define TERMINAL_WIDTH_DEFAULT 80
#define SHARES_OF_REPORT 32 /* of a second's 20 scans: 640 samples */

struct run {
	const struct config *config;
	const struct renderer *renderer;
	struct text *into; /* text that gets the output; NULL: it is written as configured */
	struct report report;
	struct interval interval;
	struct column_list unrecorded; /* columns that a recording lacks */
	struct text command;
	struct source_status before; /* status as of the last interval */
	struct scan scan;	     /* the present one, or the last */
	struct scan batch;	     /* last batch of it, without its samples */
	int64_t interval_us;	     /* length of an interval; 0: one interval at the end */
	int64_t passed_us; /* time in the interval so far; negative: the interval before overran */
	int64_t end_us;	   /* limit of the time in the whole run; 0: none */
	int64_t shown;	   /* number of shown intervals, or of scans if not grouped */
	/* scan time up to which an earlier worker has delivered all (keeper.h), until the first
	 * scan of this one; 0: none */
	int64_t gap_since_ns;
};

/* Output --------------------------------------------------------------------------------------- */

static bool is_file(const char *file)
{
	return file && strcmp(file, "-") != 0;
}

static int output_fail(const char *file, int err, struct error *e)
{
	return error_set(e, -err, EXIT_FAILED, "%s: %s", file, output_error(err));
}

int run_output_check(const char *file, struct error *e)
{
	int err = is_file(file) ? output_replace_check(file) : 0;

	return err ? output_fail(file, err, e) : 0;
}

int run_output(const char *file, const struct text *out, struct error *e)
{
	int err = is_file(file) ? output_replace(file, text_string(out), out->length)
				: output_write(STDOUT_FILENO, text_string(out), out->length);

	if (err && (err != -EPIPE || is_file(file)))
		output_fail(is_file(file) ? file : "standard output", err, e);
	return err;
}

void run_output_tell(const char *file, const char *what, void (*tell)(const char *lines))
{
	struct text line = {0};

	if (!is_file(file))
		return;
	text_add_format(&line, "wrote %s, a %s\n", file, what);
	tell(text_string(&line));
	text_done(&line);
}

/* Writes the rendered text. 0 or -errno with e. */
static int run_write(struct run *run, struct error *e)
{
	struct text *out = &run->report.out;
	int err = 0;

	if (!out->length)
		return 0;
	progress_sampling_end();
	if (run->into)
		text_add(run->into, text_string(out), out->length);
	else
		err = run_output(run->config->output, out, e);
	/* each later interval replaces the file without a word */
	if (!err && run->renderer->whole && run->shown == 1)
		run_output_tell(run->config->output, run->renderer->whole, run->report.tell);
	text_clear(out);
	return err;
}

/* Beginning ------------------------------------------------------------------------------------ */

/* Sets width, height, row limit and colour, for terminals; other output is never cut. */
static void interval_fit(struct interval *interval, bool all_rows)
{
	const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR");
	struct winsize size = {0};
	long typed = columns ? strtol(columns, NULL, 10) : 0;

	if (!isatty(STDOUT_FILENO))
		return;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	interval->width = typed > 0 && typed < 10000 ? (size_t)typed : size.ws_col;
	if (!interval->width)
		interval->width = TERMINAL_WIDTH_DEFAULT;
	interval->row_limit = all_rows ? 0 : TERMINAL_ROWS;
	interval->height = all_rows ? 0 : size.ws_row;
	interval->colour = !no_color || !*no_color;
}

/* Sets the length of the run and of its intervals. */
static void run_times(struct run *run)
{
	const struct config *config = run->config;

	run->end_us = config->duration_us;
	if (!run->report.grouped)
		return;
	run->interval_us = config->interval_us;
	if (!run->interval_us && config->count)
		run->interval_us = DURATION_DEFAULT_US;
	/* a recording is read to its end */
	if (!run->interval_us && !run->end_us && !config->replay)
		run->end_us = DURATION_DEFAULT_US;
}

static const struct renderer *renderer_of(const struct config *config)
{
	if (config->mode != MODE_FORMAT)
		return config->mode == MODE_RECORD ? &renderer_csv : &renderer_report;
	if (config->report.findings)
		return config->format->of_findings;
	return config->groups ? config->format->of_groups : config->format;
}

/* Sets what all parts share, and the facts around what is shown. With --trace, formats for machines
 * write distributions instead of samples, and with --slower events, as they come. */
static void run_begin(struct run *run)
{
	const struct config *config = run->config;
	const struct renderer *renderer = run->renderer = renderer_of(config);
	struct interval *interval = &run->interval;

	run->report = (struct report){
		.options = config,
		.tell = run->report.tell,
		.e = run->report.e,
		.config = &config->report,
		.query = config_query(config),
		.renderer = renderer,
		.record = config->record,
		.grouped = renderer->grouped || (config->live.distributions && !config->record),
		.rows_of_groups = renderer->grouped,
		.for_people = renderer->has_footer,
		.events = config->live.events,
		.distributions = config->live.distributions,
		.rows = &run->report.grid,
		.slower_us = config->live.slower_us,
		.interval = interval,
		.scan = &run->scan,
	};
	run->report.kind_count = trace_kinds_list(config->live.traces, run->report.kinds);
	run->report.events_unasked =
		config->live.traces && config->live.traces == config->live.traces_unasked;
	for (char **word = config->words; word && *word; word++)
		text_add_format(&run->command, "%s%s", run->command.length ? " " : "",
				run->command.length ? *word : "tsnap");
	*interval = (struct interval){
		.report = &run->report,
		.tally = &run->report.tally,
		.command = text_string(&run->command),
		.formulas_kept_out = config->report.csv_safe,
		.verbose = config->report.verbose,
		.recording = config->replay && !strcmp(config->replay, "-") ? "standard input"
									    : config->replay,
		.host = config->part.host,
		.state = memory_get(renderer->state_bytes + 1),
	};
	interval_fit(interval, config->report.all_rows);
	if (config->report.by_time_us && !config->report.heatmap)
		interval->row_limit = 0; /* later steps matter as much as the first ones */
	run_times(run);
}

/* Prepares all that config requests, except the source. 0 or -errno with e. */
static int run_prepare(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	int err;

	run_begin(run);
	err = run_columns(config, &run->report, &run->interval.root_count, e);
	if (!err)
		err = run_output_check(config->output, e);
	if (!err && !config->replay)
		err = run_output_check(config->stack_dict, e);
	if (!err)
		err = report_begin(&run->report, part_table);
	if (!err)
		err = run_columns_check(config, &run->report, e);
	run->interval.grid = run->report.rows;
	return err;
}

/* Continues after a worker that was given up, for at least a second. */
static void run_resume(struct run *run)
{
	struct keeper_progress *progress = keeper_progress();
	int64_t least_us = run->end_us < US_PER_SECOND ? run->end_us : US_PER_SECOND;
	int64_t *total_us = &run->report.total_us;

	if (run->config->replay)
		return;
	if (!progress->began_ns) {
		progress->delivered_ns = progress->began_ns = clock_monotonic_ns();
		return;
	}
	run->gap_since_ns = progress->delivered_ns;
	run->shown = progress->reports;
	*total_us = (clock_monotonic_ns() - progress->began_ns) / NS_PER_US;
	if (run->end_us && *total_us > run->end_us - least_us)
		*total_us = run->end_us - least_us;
}

/* What is beside rows: standard error ---------------------------------------------------------- */

/* Finds the columns that were requested and that the recording lacks; not those that rows have by
 * default. */
static void run_find_unrecorded(struct run *run)
{
	struct report *report = &run->report;
	struct column_list unasked = {0}, asked = {0};
	struct error unsaid = {0};

	if (run->renderer->kind == RENDERER_ROWS && !report->query.columns) {
		column_list_add(&unasked, run->renderer->columns, true, &unsaid);
		column_list_add(&unasked, "why", true, &unsaid);
	}
	for (size_t i = 0; i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if ((column_list_has(&report->list, column) &&
		     !column_list_has(&unasked, column)) ||
		    filter_reads_column(&report->filter, column))
			asked.items[asked.count++] = column;
	}
	report_lacks(report, &asked, &run->unrecorded);
	run->interval.unrecorded = run->unrecorded.count ? &run->unrecorded : NULL;
	error_done(&unsaid);
}

/* Reports what has no place in rows and folded stacks, as they have no footer: before the first
 * row, columns that no row will have. */
static void run_report_absent(struct run *run)
{
	const struct report *report = &run->report;
	const struct event_list *events =
		report->grouped || report->record ? NULL : events_list(report);
	struct text lines = {0};

	for (size_t i = 0; i < run->before.absent_count; i++) {
		text_add_string(&lines, "absent on this host: ");
		absent_add(&lines, events ? &events->list : &report->list, &run->before.absent[i]);
		text_add_char(&lines, '\n');
	}
	run_find_unrecorded(run);
	if (run->unrecorded.count) {
		text_add_string(&lines, "not in the recording: ");
		unrecorded_add(&lines, &run->unrecorded, NULL);
		text_add_char(&lines, '\n');
	}
	run->report.tell(text_string(&lines));
	text_done(&lines);
}

/* Reports at once that the clock was set before the scan: see struct scan. */
static void run_report_clock(const struct run *run)
{
	struct text line = {0};

	if (!run->scan.clock_step_us)
		return;
	clock_step_add(&line, run->scan.clock_step_us, run->scan.time_us, run->config->replay);
	text_add_char(&line, '\n');
	run->report.tell(text_string(&line));
	text_done(&line);
}

/* After the last row: what was missed, or the whole cost if requested. */
static void run_report_footer(struct run *run)
{
	struct source_status status;
	struct text notes = {0};

	run->report.source->describe(run->report.source, &status);
	report_add_missed(&run->report, true, &status);
	if (status.self.requested) {
		status_subtract(&status, &run->before);
		interval_add_self(&notes, &(struct interval){.status = &status});
	}
	for (size_t i = 0; i < status.missed_count && !status.self.requested; i++) {
		if (!status.missed[i].count || status.missed[i].natural)
			continue;
		text_add_string(&notes, "missed: ");
		missed_add(&notes, &status.missed[i]);
		text_add_char(&notes, '\n');
	}
	run->report.tell(text_string(&notes));
	text_done(&notes);
}

/* An interval's end ---------------------------------------------------------------------------- */

/* Shows what the parts took since the last interval, and starts anew. 0 or -errno with e. */
static int run_show(struct run *run, struct error *e)
{
	struct report *report = &run->report;
	struct source *source = report->source;
	struct source_status now, status;
	int err;

	if (source->host)
		source->host->settle(source);
	if (source->host && !report->config->critical_path &&
	    (run->renderer->accounts || report->times.shared))
		source->host->account(source, report_add_account, report);
	err = report_collect(report, true);
	if (err)
		return err;
	source->describe(source, &now);
	status = now;
	status_subtract(&status, &run->before);
	if (report->rows_of_groups)
		run->before = now;
	report->status = &status;
	report_end(report);
	report_add_missed(report, false, &status);
	run_find_unrecorded(run);
	run->interval.status = &status;
	run->interval.follows = run->shown > 0;
	if (!report->unwanted) {
		run->renderer->add(&report->out, &run->interval);
		run->shown++;
	}
	run->interval.status = NULL;
	report_clear(report);
	keeper_progress()->reports = run->shown;
	keeper_progress()->delivered_ns = run->scan.scan_time_ns;
	return run_write(run, e);
}

/* Adds the time before the scan in which no thread was seen, and for which a recording has no rows.
 * It may end an interval; whole intervals of it are skipped. */
static int run_take_silence(struct run *run, const struct scan *scan)
{
	struct report *report = &run->report;
	int64_t left = scan->silent_us, first = run->interval_us - run->passed_us;
	int64_t from_us = scan->time_us - scan->weight_us - left;
	int err;

	if (!left)
		return 0;
	groups_add_silence(report, scan->weight_us, from_us, left);
	report->total_us = sum(report->total_us, left);
	if (run->interval_us && left >= first) {
		tally_add_silence(&report->tally, from_us, first, ratio(first, 1, scan->weight_us));
		err = run_show(run, run->report.e);
		if (err)
			return err;
		run->passed_us = 0;
		left = (left - first) % run->interval_us;
		from_us = scan->time_us - scan->weight_us - left;
	}
	tally_add_silence(&report->tally, from_us, left, ratio(left, 1, scan->weight_us));
	run->passed_us = sum(run->passed_us, left);
	return 0;
}

/* A scan --------------------------------------------------------------------------------------- */

static int run_take(struct run *run, const struct scan *batch)
{
	struct report *report = &run->report;
	int err = 0;

	if (report->grouped && !report->in_scan && !report->config->critical_path)
		err = run_take_silence(run, batch);
	if (!err)
		report_take(report, batch);
	report->in_scan = true;
	run->batch = *batch;
	run->batch.count = 0;
	return err;
}

/* What the source calls: see sample/source.h. */
static int batch_take(void *to, const struct scan *batch)
{
	struct run *run = to;
	int err;

	if (batch->again) {
		groups_take_again(&run->report, &batch->samples[0]);
		return 0;
	}
	err = run_take(run, batch);
	if (run->report.grouped)
		groups_end_batch(&run->report, batch);
	/* write only if that does not block: threads of the scan must not wait for the reader of
	 * earlier ones */
	if (!err && run->report.out.length &&
	    output_is_ready(STDOUT_FILENO, run->report.out.length))
		err = run_write(run, run->report.e);
	return err;
}

/* Finds the scans that are missing before the present one, if it is the first after a worker that
 * was given up: what that one had not delivered is lost, too. */
static void run_find_gap(struct run *run)
{
	int64_t since_ns = run->scan.scan_time_ns - run->gap_since_ns, scans = 0;

	if (run->gap_since_ns)
		scans = ratio(since_ns, run->before.rate_hz, NS_PER_SECOND) - 1;
	run->gap_since_ns = 0;
	run->report.gap_scans = scans > 0 ? scans : 0;
	report_miss(&run->report,
		    "scans missed while the process that samples was replaced by another",
		    run->report.gap_scans);
}

/* Ends the scan in an interval: all of it has been taken, and its time has passed. */
static int run_end_groups(struct run *run, struct error *e)
{
	int64_t weight_us = run->scan.weight_us;

	groups_end_scan(&run->report, &run->scan);
	run->passed_us = sum(run->passed_us, weight_us);
	/* an interval ends at the scan nearest to its length; the next one makes up for the
	 * difference */
	if (!run->interval_us || sum(run->passed_us, weight_us / 2) < run->interval_us)
		return 0;
	run->passed_us = (run->passed_us - run->interval_us) % run->interval_us;
	return run_show(run, e);
}

/* Shows progress, for grouped output only: rows are written as they come. */
static void run_show_progress(const struct run *run)
{
	const struct report *report = &run->report;

	/* no scans: a report has just been written, possibly the last one */
	if (run->config->replay || !report->grouped || !report->tally.scans)
		return;
	progress_sampling(run->interval_us ? run->passed_us : report->total_us,
			  run->interval_us ? run->interval_us : run->end_us, report->tally.samples);
}

/* Lets the source free texts that are not used any more. */
static void run_release(struct run *run)
{
	struct report *report = &run->report;
	struct source *source = report->source;

	if (!source->host || (report->grouped && report->tally.scans) || report_holds(report))
		return;
	if (source->host->crowded(source))
		report_release(report);
	source->host->release(source);
}

/* Takes the present scan: what of it came in no batch, and what the source has beside samples. */
static int run_take_scan(struct run *run, struct error *e)
{
	struct report *report = &run->report;
	int err;

	if (!run->renderer->has_footer)
		run_report_clock(run);
	run_find_gap(run);
	err = run_take(run, &run->scan);
	if (!err && !report->grouped)
		report->total_us = sum(report->total_us, run->scan.silent_us);
	if (!err)
		err = report_collect(report, false);
	if (!err && report->grouped) {
		err = run_end_groups(run, e);
	} else if (!err) {
		run->shown++;
		if (!report->record) {
			keeper_progress()->reports = run->shown;
			keeper_progress()->delivered_ns = run->scan.scan_time_ns;
		}
		err = run_write(run, e);
	}
	report->in_scan = false;
	report->total_us = sum(report->total_us, run->scan.weight_us);
	run_show_progress(run);
	if (!err)
		run_release(run);
	return err;
}

/* The loop ------------------------------------------------------------------------------------- */

static bool run_ended(const struct run *run)
{
	return signals_stop() || (run->config->count && run->shown >= run->config->count) ||
	       (run->end_us && sum(run->report.total_us, run->scan.weight_us / 2) >= run->end_us);
}

/* Counts a scan of which no more will come. */
static void run_cut_scan(struct run *run)
{
	if (run->report.in_scan && run->report.grouped)
		groups_end_scan(&run->report, &run->batch);
}

/* Shows what was sampled before a call that does not end (keeper/keeper.h). */
static void run_save(void *of)
{
	struct run *run = of;
	struct error e = {0};

	run->report.e = &e;
	run_cut_scan(run);
	report_save(&run->report);
	if (run->report.grouped && run->report.tally.scans)
		run_show(run, &e);
	else if (!run->report.grouped)
		run_write(run, &e);
	error_done(&e);
	if (!run->renderer->has_footer)
		run_report_footer(run);
}

/* Writes what precedes the first interval. */
static int run_write_begin(struct run *run, struct error *e)
{
	struct report *report = &run->report;
	bool begun = keeper_progress()->output_begun;

	keeper_progress()->output_begun = true;
	if (!run->renderer->begin || begun || report->record)
		return 0;
	run->renderer->begin(&report->out, events_list(report)		? &events_list(report)->list
					   : distributions_list(report) ? distributions_list(report)
									: &report->list);
	return run_write(run, e);
}

/* Shows the rest, unless an interval was just shown. err: result of the loop; the error that ended
 * it is worse than one here. */
static int run_end(struct run *run, int err, struct error *e)
{
	struct report *report = &run->report;
	struct error second = {0};
	struct error *first = err ? &second : e;
	int err_of_end = 0;

	run_cut_scan(run);
	report->e = first;
	if (!report->grouped) {
		err_of_end = report_collect(report, true);
		if (!err_of_end)
			err_of_end = run_write(run, first);
	} else if (!err || err == -EOWNERDEAD) {
		/* what --trace measured since the last report, if the user interrupts */
		if (!err && signals_stop() && !report->tally.scans && run->shown)
			err_of_end = report_collect(report, true);
		if (!err_of_end && (report->tally.scans || (!err && !run->shown)))
			err_of_end = run_show(run, first);
	}
	report->e = e;
	error_done(&second);
	return err ? err : err_of_end;
}

static int run_loop(struct run *run, struct error *e)
{
	struct source *source = run->report.source;
	int err = run_write_begin(run, e), more;

	keeper_saves(run->into ? NULL : run_save, run);
	while (!err && !run_ended(run)) {
		more = source->next(source, &run->scan, e);
		if (more == -EINTR)
			continue;
		if (more <= 0) {
			err = more;
			break;
		}
		err = run_take_scan(run, e);
	}
	keeper_saves(NULL, NULL);
	return run_end(run, err, e);
}

/* Opens the source for what the parts need. 0 or -errno with e. */
static int run_open(struct run *run, source_opener *open_source, struct error *e)
{
	struct report *report = &run->report;
	uint64_t needs = report_needs(report);
	bool of_host =
		!report->config->critical_path && (run->renderer->accounts || report->times.shared);
	int err;

	report->open_source = open_source;
	if (of_host)
		needs = sample_needs_close(needs | NEED_PROCESSES);
	err = open_source(run->config, &report->filter, needs, &report->source, e);
	if (err)
		return err;
	keeper_guard_begin();
	report->source->take = batch_take;
	report->source->take_to = run;
	report->source->keeps_refused = report->times.shared;
	report->source->sums_up = report->grouped && groups_sum_up(report);
	report->source->shares =
		report->source->sums_up && !groups_have_few(report) ? SHARES_OF_REPORT : 0;
	report->source->describes_host = of_host;
	report->source->describe(report->source, &run->before);
	/* what is lost was found when the recording was opened, or later */
	if (run->config->replay)
		run->before.missed_count = 0;
	if (run->before.remarks && !keeper_progress()->began_ns) /* else a worker before has told */
		run->report.tell(run->before.remarks);
	if (!run->renderer->has_footer)
		run_report_absent(run);
	if (run->config->report.verbose && run->before.chosen)
		run->report.tell(run->before.chosen);
	run_resume(run);
	return report_open(report);
}

static void run_done(struct run *run)
{
	if (run->report.source)
		run->report.source->close(run->report.source);
	report_done(&run->report);
	if (run->interval.state && run->renderer->done)
		run->renderer->done(run->interval.state);
	free(run->interval.state);
	text_done(&run->command);
}

int run_into(struct text *text, const struct config *config, source_opener *open_source,
	     void (*tell)(const char *lines), struct error *e)
{
	struct run run = {.config = config, .report = {.tell = tell, .e = e}, .into = text};
	bool waits = config->report.condition.given && !config->record;
	int err = run_prepare(&run, e);

	if (!err) {
		err = run_open(&run, open_source, e);
		if (!err)
			err = run_loop(&run, e);
		else if (!run.report.source && signals_stop())
			err = 0; /* stopped before there was anything to show */
		if (run.report.source && !run.renderer->has_footer)
			run_report_footer(&run);
		if (!err && !run.report.total_us && signals_stop() && !config->replay)
			tell(NOTHING_SAMPLED);
		else if (!err && waits && !run.shown)
			tell("not found: no interval had what --when waits for\n");
	}
	run_done(&run);
	if (err == -EPIPE && !e->line[0])
		err = 0;
	return !err && waits && run.shown ? 1 : err;
}

int run(const struct config *config, source_opener *open_source, void (*tell)(const char *lines),
	struct error *e)
{
	return run_into(NULL, config, open_source, tell, e);
}
