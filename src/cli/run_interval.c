/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An interval: filled, rendered, written; and what is reported beside rows. */
#include "cli/run_state.h"
#include "keeper/keeper.h"
#include "base/progress.h"
#include "report/value.h"

#include <string.h>

#define SAMPLES_REFUSED "samples in more groups than tsnap keeps"
#define EVENTS_REFUSED "single events more than tsnap keeps"
#define DISTRIBUTIONS_REFUSED "events in more distributions than tsnap keeps"

int run_write(struct run *run, struct error *e)
{
	int err = 0;

	if (!run->out.length)
		return 0;
	progress_sampling_end();
	if (run->into)
		text_add(run->into, text_string(&run->out), run->out.length);
	else
		err = run_output(run->config->output, &run->out, e);
	/* each later interval replaces the file without a word */
	if (!err && run->renderer->whole && run->shown == 1)
		run_output_tell(run->config->output, run->renderer->whole, run->report);
	text_clear(&run->out);
	return err;
}

/* Counts samples without a stack in a recording; a live host's footer says why each was not read.
 */
static void stacks_miss(const struct run *run, struct source_status *status)
{
	if (run->config->replay && run_shows_stacks(run))
		source_status_miss_any(status,
				       "samples without a stack (a recording needs the column "
				       "stack, or its --stack-dict)",
				       (uint64_t)run->stackless);
}

/* Counts scans that no worker made while one was replaced by the next, or that were lost with it.
 */
static void gap_miss(const struct run *run, struct source_status *status)
{
	source_status_miss_any(status,
			       "scans missed while the process that samples was replaced by "
			       "another",
			       (uint64_t)run->gap_scans);
}

int64_t run_find_gap(struct run *run, const struct scan *scan)
{
	int64_t since_ns = scan->scan_time_ns - run->gap_since_ns, scans = 0;

	run->scan_ns = scan->scan_time_ns;
	if (run->gap_since_ns)
		scans = ratio(since_ns, run->status_before.rate_hz, NS_PER_SECOND) - 1;
	run->gap_since_ns = 0;
	scans = scans > 0 ? scans : 0;
	run->gap_scans = sum(run->gap_scans, scans);
	return scans;
}

static int64_t since(int64_t now, int64_t before)
{
	return now == ABSENT || before == ABSENT ? now : counted_since(now, before);
}

/* Subtracts the status of before; control groups that were not throttled since then are removed. */
static void quotas_subtract(struct source_status *now, const struct source_status *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < now->quota_count; i++) {
		struct source_quota quota = now->quotas[i];

		for (size_t j = 0; j < before->quota_count; j++) {
			const struct source_quota *old = &before->quotas[j];

			if (strcmp(quota.path, old->path) != 0)
				continue;
			quota.periods -= old->periods;
			quota.throttled_periods -= old->throttled_periods;
			quota.throttled_us -= old->throttled_us;
		}
		if (quota.throttled_periods > 0 || quota.throttled_us > 0)
			now->quotas[kept++] = quota;
	}
	now->quota_count = kept;
}

/* Subtracts the status of before; limits of which nothing was used since then are removed. */
static void io_limits_subtract(struct source_status *now, const struct source_status *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < now->io_limit_count; i++) {
		struct source_io_limit limit = now->io_limits[i];

		for (size_t j = 0; j < before->io_limit_count; j++) {
			const struct source_io_limit *old = &before->io_limits[j];

			if (limit.device == old->device && limit.word == old->word &&
			    !strcmp(limit.path, old->path))
				limit.used -= old->used;
		}
		if (limit.used > 0)
			now->io_limits[kept++] = limit;
	}
	now->io_limit_count = kept;
}

/* A pressure that was not known before, as that of a group which was made since, is not known of
 * the interval. */
static void pressure_subtract(struct source_pressure *now, const struct source_pressure *before)
{
	now->known = now->known && before->known;
	now->some_us -= before->some_us;
	now->full_us -= before->full_us;
	now->read_us -= before->read_us;
	/* a reading takes time, but no time is longer than that in which it passed */
	if (now->read_us < now->some_us)
		now->read_us = now->some_us;
}

/* Changes now, the present status, to the difference since before. */
static void status_subtract(struct source_status *now, const struct source_status *before)
{
	now->own_cpu_ns = since(now->own_cpu_ns, before->own_cpu_ns);
	now->busy_us = since(now->busy_us, before->busy_us);
	now->busy_error_us = since(now->busy_error_us, before->busy_error_us);
	now->bpf_ns = since(now->bpf_ns, before->bpf_ns);
	now->bpf_runs = since(now->bpf_runs, before->bpf_runs);
	self_cost_subtract(&now->self, &before->self);
	quotas_subtract(now, before);
	io_limits_subtract(now, before);
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		pressure_subtract(&now->pressure[i], &before->pressure[i]);
		pressure_subtract(&now->group_pressure[i], &before->group_pressure[i]);
	}
	for (size_t i = 0; i < now->missed_count; i++)
		for (size_t j = 0; j < before->missed_count; j++)
			if (!now->missed[i].standing &&
			    !strcmp(now->missed[i].what, before->missed[j].what))
				now->missed[i].count =
					(uint64_t)counted_since((int64_t)now->missed[i].count,
								(int64_t)before->missed[j].count);
}

static void distribution_take(void *to, const struct trace_kind *kind, const struct sample *who,
			      const struct histogram *histogram)
{
	distribution_table_add(to, kind, who, histogram);
}

int run_take_traced(struct run *run, bool all, struct error *e)
{
	struct distribution_table *table = &run->distributions;

	return table->kind_count
		       ? run->source->traced(run->source, all, distribution_table_needs(table),
					     distribution_take, table, e)
		       : 0;
}

static void account_take(void *to, const struct sample *account)
{
	struct run *run = to;

	group_table_add_account(&run->groups, account);
	tally_add_account(&run->tally, account);
	findings_add_account(&run->findings, account);
}

static void event_take(void *to, const struct trace_kind *kind, const struct sample *who,
		       int64_t duration_ns)
{
	struct run *run = to;
	struct sample reported = *who;

	if (run->sleep_stacks_wanted)
		sleep_stacks_fill(&run->sleep_stacks, &reported, kind->runnable, duration_ns);
	event_list_add(&run->events, kind, &reported, duration_ns);
}

void run_note_sleeps(struct run *run, const struct scan *batch)
{
	for (size_t i = 0; run->sleep_stacks_wanted && i < batch->count; i++)
		sleep_stacks_note(&run->sleep_stacks, &batch->samples[i]);
}

void run_release(struct run *run)
{
	struct source *source = run->source;

	if (!source->release)
		return;
	if (source->crowded && source->crowded(source))
		sleep_stacks_clear(&run->sleep_stacks);
	source->release(source);
}

void run_take_events(struct run *run)
{
	if (run_lists_events(run))
		run->source->events(run->source, event_list_needs(&run->events), event_take, run);
}

void run_add_sample(void *to, const struct sample *sample, struct exact_note note)
{
	struct run *run = to;

	group_table_add_noted(&run->groups, sample, note);
	stack_lines_add(&run->stacks, sample, note);
	chain_report_add(&run->chains, sample, note);
	findings_add(&run->findings, sample, note);
}

void run_share_out(struct run *run)
{
	late_waits_end(&run->late_waits, run_add_sample, run);
	group_table_share_out(&run->groups);
	group_table_share_out(&run->stacks.groups);
	chain_report_share_out(&run->chains);
	findings_share_out(&run->findings);
	exact_times_clear(&run->times);
}

/* Ends the exact times of the interval: they are in its groups then. */
static void run_end_times(struct run *run)
{
	run_share_out(run);
	group_table_end_interval(&run->groups, &run->tally);
	exact_times_end_interval(&run->times);
	/* a report without samples shows the sleepers, unless exact times were requested */
	if (run->renderer->has_footer && !run->tally.samples && !run->groups.exact)
		group_table_clear(&run->groups);
}

/* Exact CPU time of all threads; 0: the filter refuses some, or it was not counted. */
static int64_t run_cpu_us(const struct run *run)
{
	if (run_filters(run) || run->groups.refused)
		return 0;
	return run->groups.exact ? group_table_cpu_us(&run->groups) : run->tally.all_us[TIME_ON];
}

/* Finds the columns that were requested and that the recording lacks; not those that rows have by
 * default. */
static void run_find_unrecorded(struct run *run)
{
	struct column_list unasked = {0};
	struct error unsaid = {0};

	if (run->renderer->kind == RENDERER_ROWS && !run->config->columns) {
		column_list_add(&unasked, run->renderer->columns, true, &unsaid);
		column_list_add(&unasked, "why", true, &unsaid);
	}
	run->unrecorded.count = run->chains.unrecorded.count = run->findings.unrecorded.count = 0;
	for (size_t i = 0; run->source->lacks && i < sample_column_count; i++) {
		const struct column *column = &sample_columns[i];

		if (!run->source->lacks(run->source, column))
			continue;
		if ((column_list_has(&run->list, column) && !column_list_has(&unasked, column)) ||
		    filter_reads_column(&run->filter, column) ||
		    filter_reads_column(&run->when, column))
			run->unrecorded.items[run->unrecorded.count++] = column;
		if (column_list_has(&run->chains.needed, column))
			run->chains.unrecorded.items[run->chains.unrecorded.count++] = column;
		if (column_list_has(&run->findings.list, column))
			run->findings.unrecorded.items[run->findings.unrecorded.count++] = column;
	}
	error_done(&unsaid);
	run->interval.unrecorded = run->unrecorded.count ? &run->unrecorded : NULL;
}

/* True if no sample can say that its thread was in a system call. */
static bool run_lacks_calls(const struct run *run)
{
	const struct source_status *status = &run->status_before;

	for (size_t i = 0; i < status->absent_count; i++)
		if (status->absent[i].needs & NEED_SYSCALL)
			return true;
	return run->source->lacks && run->source->lacks(run->source, sample_column_find("syscall"));
}

int run_show(struct run *run, struct error *e)
{
	struct source_status now, interval;
	int err = run_take_traced(run, true, e);

	if (err)
		return err;
	run->groups.calls_unknown = run_lacks_calls(run);
	if (run->source->settle)
		run->source->settle(run->source);
	if (run->source->account && run_accounts(run))
		run->source->account(run->source, account_take, run);
	run_take_events(run);
	run_path_settle(run);
	run->source->describe(run->source, &now);
	interval = now;
	status_subtract(&interval, &run->status_before);
	source_status_miss_any(&interval, SAMPLES_REFUSED, (uint64_t)run->groups.refused);
	run->refused = sum(run->refused, run->groups.refused);
	source_status_miss_any(&interval, DISTRIBUTIONS_REFUSED,
			       (uint64_t)run->distributions.refused);
	source_status_miss_any(&interval, EVENTS_REFUSED, (uint64_t)run->events.refused);
	stacks_miss(run, &interval);
	gap_miss(run, &interval);
	run->interval.status = &interval;
	run->interval.follows = run->shown > 0;
	source_status_miss_any(&interval, "samples in more stacks than tsnap keeps",
			       (uint64_t)run->stacks.groups.refused);
	source_status_miss_any(&interval, "rows of more steps of time than tsnap keeps",
			       (uint64_t)run->time_rows.refused);
	if (run->time_rows.step_us)
		time_rows_end(&run->time_rows, &run->groups);
	run_end_times(run);
	if (run->time_rows.step_us) {
		run->interval.grid = &run->time_rows.grid;
	} else if (run->renderer->grouped) {
		run->status_before = now;
		run->tally.cpu_us = run_cpu_us(run);
		grid_fill_groups(&run->grid, &run->groups, &run->tally);
		if (run->sort)
			grid_sort(&run->grid, run->sort);
		stack_lines_fill(&run->stacks, &run->grid, &run->tally);
		chain_report_fill(&run->chains, &run->tally);
		source_status_miss_any(&interval,
				       "samples of more roots or locks than --chains keeps",
				       (uint64_t)run->chains.refused);
		findings_fill(&run->findings, &run->tally, &interval, run->source);
		source_status_miss_any(&interval, "samples of more kinds than --findings keeps",
				       (uint64_t)run->findings.groups.refused);
	} else {
		distribution_rows_fill(&run->distributions, &run->tally, &run->grid);
	}
	if (!run->path.wanted)
		run_find_sleepers(run);
	run_find_unrecorded(run);
	run->renderer->add(&run->out, &run->interval);
	run->interval.status = NULL;
	group_table_clear(&run->groups);
	distribution_table_clear(&run->distributions);
	stack_lines_clear(&run->stacks);
	chain_report_clear(&run->chains);
	findings_clear(&run->findings);
	event_list_clear(&run->events);
	run->tally = (struct tally){0};
	run->gap_scans = 0;
	keeper_progress()->reports = ++run->shown;
	keeper_progress()->delivered_ns = run->scan_ns;
	return run_write(run, e);
}

void run_report_absent(struct run *run)
{
	const struct column_list *list = run_events_only(run) ? &run->events.list : &run->list;
	struct text lines = {0};

	for (size_t i = 0; i < run->status_before.absent_count; i++) {
		text_add_string(&lines, "absent on this host: ");
		absent_add(&lines, list, &run->status_before.absent[i]);
		text_add_char(&lines, '\n');
	}
	run_find_unrecorded(run);
	if (run->unrecorded.count) {
		text_add_string(&lines, "not in the recording: ");
		unrecorded_add(&lines, &run->unrecorded, NULL);
		text_add_char(&lines, '\n');
	}
	run->report(text_string(&lines));
	text_done(&lines);
}

void run_report_clock(const struct run *run, const struct scan *scan)
{
	struct text line = {0};

	if (!scan->clock_step_us)
		return;
	clock_step_add(&line, scan->clock_step_us, scan->time_us, run->config->replay);
	text_add_char(&line, '\n');
	run->report(text_string(&line));
	text_done(&line);
}

void run_report_footer(struct run *run)
{
	struct source_status status;
	struct text notes = {0};

	run->source->describe(run->source, &status);
	source_status_miss_any(&status, SAMPLES_REFUSED, (uint64_t)run->refused);
	source_status_miss_any(&status, DISTRIBUTIONS_REFUSED,
			       (uint64_t)run->distributions.refused_ever);
	source_status_miss_any(&status, EVENTS_REFUSED, (uint64_t)run->events.refused_ever);
	source_status_miss_any(
		&status,
		"stacks beyond their user's share of a dictionary, or of an hour of a "
		"recording",
		run->stack_dict.written.refused);
	stacks_miss(run, &status);
	gap_miss(run, &status);
	if (status.self.requested) {
		status_subtract(&status, &run->status_before);
		interval_add_self(&notes, &(struct interval){.status = &status});
	}
	for (size_t i = 0; i < status.missed_count && !status.self.requested; i++) {
		if (!status.missed[i].count || status.missed[i].natural)
			continue;
		text_add_string(&notes, "missed: ");
		missed_add(&notes, &status.missed[i]);
		text_add_char(&notes, '\n');
	}
	run->report(text_string(&notes));
	text_done(&notes);
}
