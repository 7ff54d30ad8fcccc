/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop: takes a scan from the source, keeps it, and shows what was kept. The data flow:
 *
 *   source->next() --> scan --> grouped: group_table, at an interval's end --> grid --> interval
 *                  --> batch --> rows: grid at once --> interval
 *   source->traced() (--trace) --> distribution_table, at an interval's end --> interval
 *   source->events() (--slower, --trace exec) --> event_list, at an interval's end --> interval
 *   interval --> renderer --> text --> standard output
 *
 * The source has applied the filter and filled what the columns need.
 */
#include "cli/run_state.h"
#include "keeper/keeper.h"
#include "keeper/keeper_loss.h"
#include "base/clock.h"
#include "run_record.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/signals.h"
#include "report/value.h"

#include <errno.h>
#include <unistd.h>

/* Adds the time before a scan in which no thread was seen to the steps of --by-time: steps between
 * the first and the last one have no rows. */
static void silence_add_steps(struct run *run, int64_t weight_us, int64_t from_us,
			      int64_t silent_us)
{
	struct time_rows *rows = &run->time_rows;
	int64_t until_us = from_us + silent_us, in_step;

	if (!rows->step_us)
		return;
	in_step = until_us % rows->step_us;
	if (rows->from_us != ABSENT && from_us < rows->from_us + rows->step_us) {
		int64_t first = rows->from_us + rows->step_us - from_us;

		first = first < silent_us ? first : silent_us;
		tally_add_silence(&rows->tally, from_us, first, ratio(first, 1, weight_us));
		silent_us -= first;
	}
	time_rows_begin(rows, until_us, &run->groups);
	if (in_step < silent_us)
		silent_us = in_step;
	tally_add_silence(&rows->tally, until_us - silent_us, silent_us,
			  ratio(silent_us, 1, weight_us));
}

/* Adds the time before the scan in which no thread was seen, and for which a recording has no rows.
 * It may end an interval; whole intervals of it are skipped. */
static int run_take_silence(struct run *run, const struct scan *scan, struct error *e)
{
	int64_t left = scan->silent_us, first = run->interval_us - run->passed_us;
	int64_t from_us = scan->time_us - scan->weight_us - left;
	int err;

	if (!left)
		return 0;
	silence_add_steps(run, scan->weight_us, from_us, left);
	run->total_us = sum(run->total_us, left);
	if (run->interval_us && left >= first) {
		tally_add_silence(&run->tally, from_us, first, ratio(first, 1, scan->weight_us));
		err = run_show(run, e);
		if (err)
			return err;
		run->passed_us = 0;
		left = (left - first) % run->interval_us;
		from_us = scan->time_us - scan->weight_us - left;
	}
	tally_add_silence(&run->tally, from_us, left, ratio(left, 1, scan->weight_us));
	run->passed_us = sum(run->passed_us, left);
	return 0;
}

/* Counts samples without a stack, for output that is made of stacks alone. */
static void run_note_stacks(struct run *run, const struct scan *batch)
{
	for (size_t i = 0; i < batch->count && !run->stacks_seen; i++) {
		run->stacks_seen = batch->samples[i].stack.both;
		run->stackless = run->stacks_seen ? 0 : run->stackless + 1;
	}
}

/* Sets the interval of exact times up to a scan, that long after what the tally has. */
static void run_times_at(struct run *run, int64_t since_us)
{
	const struct tally *tally = run->time_rows.step_us ? &run->time_rows.tally : &run->tally;

	exact_times_at(&run->times, sum(tally->elapsed_us, since_us));
}

/* Sets the interval of a sample that is not shown: once its scan has begun, the time before the
 * scan in which no thread was seen is in the tally. */
static void run_pass_begin(struct run *run, const struct scan *scan)
{
	time_rows_begin(&run->time_rows, scan->time_us, &run->groups);
	run_times_at(run, run->in_scan ? scan->weight_us : sum(scan->weight_us, scan->silent_us));
}

/* Adds a sample that the filter refuses, of a thread whose other samples it may accept: it has a
 * part of the thread's times. */
static void run_pass_samples(struct run *run, const struct scan *scan, const struct sample *sample)
{
	run_pass_begin(run, scan);
	exact_times_add(&run->times, sample);
}

/* Takes a sample that is not shown, of a thread that may be. */
static void run_pass(void *take_to, const struct scan *scan, const struct sample *sample)
{
	struct run *run = take_to;
	struct sample account;

	if (!filter_keeps_threads(&run->filter)) {
		run_pass_samples(run, scan, sample);
		return;
	}
	if (!exact_times_has(&run->times, sample))
		return;
	account = sample_account(sample);
	sample_derive(&account, column_list_needs(&run->list) | filter_needs(&run->filter));
	if (filter_eval_thread(&run->filter, &account, ~0ull) != VERDICT_ACCEPTED)
		return;
	run_pass_begin(run, scan);
	group_table_add_account(&run->groups, &account);
}

/* Takes a sample again, for scans that left it out. */
static void run_take_again(void *take_to, const struct sample *sample)
{
	struct run *run = take_to;
	struct exact_note note = {.part = EXACT_PART_NONE, .again = true};

	if (run->groups.split)
		note = exact_times_add_again(&run->times, sample);
	run_add_sample(run, sample, note);
	run->tally.samples += sample_scans(sample);
}

static int run_take_groups(struct run *run, const struct scan *batch)
{
	int err = run->in_scan ? 0 : run_take_silence(run, batch, run->e);

	time_rows_begin(&run->time_rows, batch->time_us, &run->groups);
	run_times_at(run, batch->weight_us);
	for (size_t i = 0; !err && i < batch->count; i++) {
		struct exact_note note = EXACT_NOTE_NONE;

		if (run->groups.split)
			note = exact_times_add(&run->times, &batch->samples[i]);
		if (!late_waits_hold(&run->late_waits, &batch->samples[i], note))
			run_add_sample(run, &batch->samples[i], note);
	}
	if (exact_times_full(&run->times) || group_table_crowded(&run->groups) ||
	    group_table_crowded(&run->stacks.groups) || chain_report_crowded(&run->chains) ||
	    findings_crowded(&run->findings))
		run_share_out(run);
	if (run_shows_stacks(run))
		run_note_stacks(run, batch);
	return err;
}

void run_add_row(struct run *run, const struct sample *sample)
{
	struct sample row = *sample;

	grid_fill_rows(&run->grid, &run->list, &(struct scan){.samples = &row, .count = 1});
	run->renderer->add(&run->out, &run->interval);
}

/* Adds a row that has waited. */
static void run_give_row(void *to, const struct sample *sample, struct exact_note note)
{
	(void)note;
	run_add_row(to, sample);
}

static void run_take_rows(struct run *run, const struct scan *batch)
{
	if (run->config->patience_us) {
		run->late_waits.now_us = sum(run->total_us, batch->weight_us);
		for (size_t i = 0; i < batch->count; i++)
			late_waits_queue(&run->late_waits, &batch->samples[i], run_give_row, run);
		return;
	}
	grid_fill_rows(&run->grid, &run->list, batch);
	run->renderer->add(&run->out, &run->interval);
}

static int run_take(struct run *run, const struct scan *batch)
{
	int err = 0;

	run_note_sleeps(run, batch);
	chain_report_note(&run->chains, batch);
	if (run->path.wanted)
		run_path_take(run, batch);
	else if (run_grouped(run))
		err = run_take_groups(run, batch);
	else if (!run_events_only(run))
		run_take_rows(run, batch);
	run->in_scan = true;
	run->batch = *batch;
	run->batch.count = 0;
	return err;
}

static int run_take_batch(void *take_to, const struct scan *batch)
{
	struct run *run = take_to;
	int err = run_take(run, batch);

	if (run_grouped(run))
		tally_add_batch(&run->tally, batch);
	tally_add_batch(&run->time_rows.tally, batch);
	/* write only if that does not block: threads of the scan must not wait for the reader of
	 * earlier ones */
	if (!err && run->out.length && output_is_ready(STDOUT_FILENO, run->out.length))
		err = run_write(run, run->e);
	return err;
}

/* Shows progress, for grouped output only: rows are written as they come. */
static void run_show_progress(const struct run *run)
{
	int64_t total_us = run->interval_us ? run->interval_us : run->end_us;

	/* no scans: a report has just been written, possibly the last one */
	if (run->config->replay || !run_grouped(run) || !run->tally.scans)
		return;
	progress_sampling(run->interval_us ? run->passed_us : run->total_us, total_us,
			  run->tally.samples);
}

/* Ends the scan in the groups: all of it has been taken, and its time has passed. */
static int run_end_groups(struct run *run, const struct scan *scan, struct error *e)
{
	tally_add(&run->tally, scan);
	tally_add(&run->time_rows.tally, scan);
	run->passed_us = sum(run->passed_us, scan->weight_us);
	/* an interval ends at the scan nearest to its length; the next one makes up for the
	 * difference */
	if (!run->interval_us || sum(run->passed_us, scan->weight_us / 2) < run->interval_us)
		return 0;
	run->passed_us = (run->passed_us - run->interval_us) % run->interval_us;
	return run_show(run, e);
}

/* Writes new events, if rows are written. */
static int run_write_events(struct run *run, struct error *e)
{
	run_take_events(run);
	event_rows_fill(&run->events, &run->grid);
	run->renderer->add(&run->out, &run->interval);
	event_list_clear(&run->events);
	return run_write(run, e);
}

static int run_end_rows(struct run *run, const struct scan *scan, struct error *e)
{
	bool crowded = run->source->crowded && run->source->crowded(run->source);

	run->total_us = sum(run->total_us, scan->silent_us);
	keeper_progress()->reports = ++run->shown;
	keeper_progress()->delivered_ns = run->scan_ns;
	late_waits_pass(&run->late_waits,
			crowded ? INT64_MAX
				: sum(run->total_us, scan->weight_us) - run->config->patience_us,
			run_give_row, run);
	return run_lists_events(run) ? run_write_events(run, e) : run_write(run, e);
}

/* Writes all rows that wait: no more facts will be found. */
static int run_write_late(struct run *run, struct error *e)
{
	late_waits_end(&run->late_waits, run_give_row, run);
	run_path_settle(run);
	return run_write(run, e);
}

/* True if the run holds no texts of the source's samples. */
static bool run_holds_none(const struct run *run)
{
	return run_grouped(run) ? !run->tally.scans
				: !run->late_waits.count && !run->path.notes.scan_count;
}

static bool run_ended(const struct run *run, int64_t weight_us)
{
	return signals_stop() || (run->config->count && run->shown >= run->config->count) ||
	       (run->end_us && sum(run->total_us, weight_us / 2) >= run->end_us);
}

/* Takes what --trace has measured since the last report, if the user interrupts before the next
 * scan: as of a scan that saw no thread. */
static int run_take_rest(struct run *run, const struct scan *last, struct error *e)
{
	struct scan rest = {
		.time_us = clock_utc_us(),
		.weight_us = (clock_monotonic_ns() - last->scan_time_ns) / NS_PER_US,
	};
	int err;

	if (!signals_stop() || run->config->replay || run->tally.scans || !run->shown)
		return 0;
	err = run_take_traced(run, true, e);
	if (err || !run->distributions.count)
		return err;
	tally_add(&run->tally, &rest);
	return 0;
}

/* Counts a scan of which no more will come. */
static void run_cut_scan(struct run *run)
{
	if (!run->in_scan)
		return;
	tally_add(&run->tally, &run->batch);
	tally_add(&run->time_rows.tally, &run->batch);
}

/* Shows what was sampled before a call that does not end (keeper/keeper.h). */
static void run_save(void *of)
{
	struct run *run = of;
	struct error e = {0};

	run_cut_scan(run);
	if (!run_grouped(run))
		run_write_late(run, &e);
	else if (run->tally.scans)
		run_show(run, &e);
	error_done(&e);
	if (!run->renderer->has_footer)
		run_report_footer(run);
}

static int run_loop(struct run *run, struct error *e)
{
	struct error unsaid = {0};
	struct scan scan = {0};
	int err = 0;

	if (run->renderer->begin && !keeper_progress()->output_begun) {
		run->renderer->begin(&run->out,
				     run_lists_events(run) ? &run->events.list
				     : run->config->live.distributions
					     ? distribution_rows_list(&run->distributions)
					     : &run->list);
		err = run_write(run, e);
	}
	keeper_progress()->output_begun = true;
	while (!err && !run_ended(run, scan.weight_us)) {
		int more = run->source->next(run->source, &scan, e);

		if (more == -EINTR)
			continue;
		if (more <= 0) {
			err = more;
			break;
		}
		if (!run->renderer->has_footer)
			run_report_clock(run, &scan);
		run_find_gap(run, &scan);
		err = run_take(run, &scan);
		if (!err)
			err = run_take_traced(run, false, e);
		if (run_grouped(run))
			run_take_events(run);
		run_path_end_scan(run);
		chain_report_end_scan(&run->chains);
		findings_end_scan(&run->findings, (int64_t)scan.threads);
		if (!err)
			err = stack_dict_file_flush(&run->stack_dict, e);
		if (!err)
			err = run_grouped(run) ? run_end_groups(run, &scan, e)
					       : run_end_rows(run, &scan, e);
		run->in_scan = false;
		run->total_us = sum(run->total_us, scan.weight_us);
		run_show_progress(run);
		if (!err && run_holds_none(run))
			run_release(run);
	}
	run_cut_scan(run);
	if (!err && run_grouped(run))
		err = run_take_rest(run, &scan, e);
	/* show the rest, unless an interval was just shown */
	if (!err && run_grouped(run) && (run->tally.scans || !run->shown))
		return run_show(run, e);
	if (!err && !run_grouped(run) && run_lists_events(run))
		return run_write_events(run, e);
	if (!err && !run_grouped(run))
		return run_write_late(run, e);
	/* show the rest; errors are not reported here: the one that ended the run is worse */
	if (err == -EOWNERDEAD && run_grouped(run) && run->tally.scans)
		run_show(run, &unsaid);
	else if (err == -EOWNERDEAD && !run_grouped(run))
		run_write_late(run, &unsaid);
	error_done(&unsaid);
	return err;
}

/* Runs the loop with a dictionary of its stacks beside it, which is complete however the loop
 * ends. */
static int run_recorded(struct run *run, struct error *e)
{
	const char *path = run->config->replay ? NULL : run->config->stack_dict;
	struct error second = {0};
	int err = stack_dict_file_begin(&run->stack_dict, path, run->source, e), err_of_end;

	if (err)
		return err;
	keeper_saves(run->into ? NULL : run_save, run);
	err = run_loop(run, e);
	keeper_saves(NULL, NULL);
	err_of_end = stack_dict_file_end(&run->stack_dict, err ? &second : e);
	error_done(&second);
	return err ? err : err_of_end;
}

static void run_done(struct run *run)
{
	if (run->source)
		run->source->close(run->source);
	group_table_done(&run->groups);
	exact_times_done(&run->times);
	late_waits_done(&run->late_waits);
	distribution_table_done(&run->distributions);
	stack_lines_done(&run->stacks);
	time_rows_done(&run->time_rows);
	chain_report_done(&run->chains);
	findings_done(&run->findings);
	critical_path_done(&run->path);
	sleepers_done(&run->sleepers);
	metric_totals_done(&run->metrics);
	stack_dict_file_done(&run->stack_dict);
	event_list_done(&run->events);
	sleep_stacks_done(&run->sleep_stacks);
	grid_done(&run->grid);
	text_done(&run->out);
	text_done(&run->command);
	filter_done(&run->filter);
	filter_done(&run->when);
	filter_done(&run->path_filter);
}

/* Needs that the source must fill, NEED_*. */
static uint64_t run_needs(const struct run *run)
{
	uint64_t needs = column_list_needs(&run->list) | stack_lines_needs(&run->stacks) |
			 chain_report_needs(&run->chains) | findings_needs(&run->findings) |
			 (run->config->when ? filter_needs(&run->when) : 0) | run_path_needs(run);

	if (run_events_only(run))
		return event_list_needs(&run->events);
	if (run->times.shared)
		needs |= NEED_TOTALS | (run->times.shared >> TIME_ASLEEP & 1 ? NEED_SLEEP : 0);
	return run_accounts(run) ? sample_needs_close(needs | NEED_PROCESSES) : needs;
}

/* Continues after a worker that was given up, for at least a second. */
static void run_resume(struct run *run)
{
	struct keeper_progress *progress = keeper_progress();
	int64_t least_us = run->end_us < US_PER_SECOND ? run->end_us : US_PER_SECOND;

	if (!progress->began_ns) {
		progress->delivered_ns = progress->began_ns = clock_monotonic_ns();
		return;
	}
	run->gap_since_ns = progress->delivered_ns;
	run->shown = progress->reports;
	run->total_us = (clock_monotonic_ns() - progress->began_ns) / NS_PER_US;
	if (run->end_us && run->total_us > run->end_us - least_us)
		run->total_us = run->end_us - least_us;
}

static int run_any(struct run run, source_opener *open_source, struct error *e)
{
	const struct config *config = run.config;
	int err = run_prepare(&run, e);

	if (!err) {
		err = open_source(config, &run.filter, run_needs(&run), &run.source, e);
		if (!err) {
			keeper_loss_watch();
			run.source->take = run_take_batch;
			run.source->take_to = &run;
			if (run.times.shared)
				run.source->pass = run_pass;
			if (run_sums_up(&run))
				run.source->take_again = run_take_again;
			run.source->describe(run.source, &run.status_before);
			/* what is lost was found when the recording was opened, or later */
			if (config->replay)
				run.status_before.missed_count = 0;
			if (run.status_before.remarks)
				run.report(run.status_before.remarks);
			if (!run.renderer->has_footer)
				run_report_absent(&run);
			if (config->verbose && run.status_before.chosen)
				run.report(run.status_before.chosen);
			run_resume(&run);
			err = config->record ? run_record(&run, e) : run_recorded(&run, e);
			if (!run.renderer->has_footer)
				run_report_footer(&run);
		} else if (signals_stop()) {
			err = 0; /* stopped before there was anything to show */
		}
		if (!err && !run.total_us && signals_stop() && !config->replay)
			run.report(NOTHING_SAMPLED);
	}
	run_done(&run);
	return err == -EPIPE && !e->line[0] ? 0 : err;
}

int run(const struct config *config, source_opener *open_source, void (*report)(const char *lines),
	struct error *e)
{
	return run_any((struct run){.config = config, .e = e, .report = report}, open_source, e);
}

int run_into(struct text *text, const struct config *config, source_opener *open_source,
	     void (*report)(const char *lines), struct error *e)
{
	return run_any((struct run){.config = config, .e = e, .report = report, .into = text},
		       open_source, e);
}
