/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prepares a run by its configuration: columns, filter, times, interval. */
#include "cli/run_state.h"
#include "render/fold.h"
#include "sample/waker_stack.h"
#include "live/trace_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_ROWS 20 /* rows of a table on a terminal, unless its height allows more */
#define TERMINAL_WIDTH_DEFAULT 80

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

/* columns of a report of named processes, after avg_thr: on 80 characters, too, it has room for
 * what they wait for */
#define PROCESS_COLUMNS "pid,comm,state,state_us,syscall,waits_on,chain"
#define PATH_COLUMNS "path_end,comm,syscall,waits_on,path"

/* Columns with --critical-path: rows name the process of the path, too. Stacks have their own
 * columns. */
static const char *path_columns(const struct run *run)
{
	if (run->renderer->behind)
		return "path_of,path_end,comm";
	return run_grouped(run) ? PATH_COLUMNS
				: "timestamp,weight_us,path_of_tid,path_of,tid,pid," PATH_COLUMNS;
}

/* Adds the column of --sort to those of the report, if it is none of them. */
static int run_sort(struct run *run, struct error *e)
{
	const char *name = run->config->sort;
	struct column_list one = {.count = 0};
	int err = 0;

	if (!name)
		return 0;
	err = column_list_add(&one, name, true, e);
	if (!err && one.count != 1)
		err = error_set(e, EINVAL, EXIT_USAGE, "--sort %s: give one column", name);
	run->sort = one.items[0];
	return err ? err : column_list_add(&run->list, name, true, e);
}

/* True if the columns have a number of threads of their own, in place of those of all reports. */
static bool columns_have_threads(const char *names)
{
	struct column_list list = {0}, threads = {0};
	struct error unsaid = {0};
	bool have;

	column_list_add(&threads, "threads", true, &unsaid);
	have = names && !column_list_add(&list, names, true, &unsaid) &&
	       column_list_has(&list, threads.items[0]);
	error_done(&unsaid);
	return have;
}

/* Adds what a recording has by default beyond rows of --csv: all that explains a wait afterwards.
 * Of threads that only sleep, which -a shows, there is nothing to explain. */
static int record_columns(struct run *run, struct error *e)
{
	return column_list_add(
		&run->list,
		filter_wants_work(&run->filter) ? "ppid,script,findings" : "ppid,script", false, e);
}

static int run_columns(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	const struct renderer *renderer = run->renderer;
	bool grouped = run_grouped(run);
	bool of_processes = config->named && renderer == &renderer_report && !config->columns &&
			    !config->by && !config->critical_path;
	struct query query = config_query(config);
	const char *names;
	int err = 0;

	/* distributions have the keys of a report */
	names = config->critical_path		? path_columns(run)
		: of_processes			? PROCESS_COLUMNS
		: grouped && !renderer->grouped ? REPORT_COLUMNS_DEFAULT
		: config->by_chain		? FOLD_CHAIN_ROOT
						: renderer->columns;
	/* a replay needs the time */
	if (config->mode == MODE_RECORD)
		err = column_list_add(&run->list, "timestamp", grouped, e);
	if (!err && renderer->before && !columns_have_threads(config->columns))
		err = column_list_add(&run->list, of_processes ? "avg_thr" : renderer->before,
				      grouped, e);
	if (!err)
		err = query_columns(&query, names, grouped, &run->list, e);
	/* rows of sleeping threads have the wait class that chose them, for a replay, too */
	if (!err && !config->columns && !grouped && filter_wants_work(&run->filter))
		err = column_list_add(&run->list, "why", grouped, e);
	if (!err && !config->columns && config->mode == MODE_RECORD)
		err = record_columns(run, e);
	if (!err && config->more_columns)
		err = column_list_add(&run->list, config->more_columns, grouped, e);
	if (!err && config->stack_dict && !config->replay)
		err = column_list_add(&run->list, "ustack,kstack", grouped, e);
	if (!err && config->by_chain)
		err = column_list_add(&run->list, FOLD_CHAIN_ROOT, grouped, e);
	if (!err)
		err = run_sort(run, e);
	run->interval.root_count = run->list.count;
	if (err || !renderer->behind)
		return err;
	for (size_t i = 0; i < run->list.count; i++)
		if (run->list.items[i]->role != ROLE_KEY)
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s is a value of a report's groups: it can't be a frame "
					 "or a label",
					 run->list.items[i]->name);
	err = column_list_add(&run->list, config->by_chain ? FOLD_CHAIN_COLUMNS : renderer->behind,
			      grouped, e);
	if (!err && config->off_wake)
		err = column_list_add(&run->list, WAKER_COLUMNS, grouped, e);
	return err;
}

static int run_filter(struct run *run, struct error *e)
{
	struct query query = config_query(run->config);

	run->when.all_states = true;
	run->when.expression.option = "--when";
	if (run->config->when && filter_set_expression(&run->when, run->config->when, e))
		return -EINVAL;
	return query_filter(&query, &run->filter, e);
}

/* Sets the length of the run and of its intervals. */
static void run_times(struct run *run)
{
	const struct config *config = run->config;

	run->end_us = config->duration_us;
	if (!run_grouped(run))
		return;
	run->interval_us = config->interval_us;
	if (!run->interval_us && config->count)
		run->interval_us = DURATION_DEFAULT_US;
	/* a recording is read to its end */
	if (!run->interval_us && !run->end_us && !config->replay)
		run->end_us = DURATION_DEFAULT_US;
}

static int run_events(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	uint32_t reported = config->live.slower_ms ? config->live.traces
						   : trace_singles_of(config->live.traces);
	struct text names = {0};
	int err;

	if (!run_lists_events(run))
		return 0;
	text_add_string(&names, config->columns ? config->columns : EVENT_COLUMNS_DEFAULT);
	if (config->live.slower_ms && !config->columns)
		text_add_string(&names, "," EVENT_COLUMNS_SLOW);
	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (reported >> kind & 1 && trace_rows[kind].kind.columns)
			text_add_format(&names, ",%s", trace_rows[kind].kind.columns);
	run->interval.events = &run->events;
	run->interval.slower_ms = config->live.slower_ms;
	err = event_list_init(&run->events, text_string(&names), config->more_columns, e);
	text_done(&names);
	return err;
}

/* Enables the facts that single waits take from samples within them. */
static void run_sleep_stacks(struct run *run)
{
	const struct config *config = run->config;
	uint64_t needs = event_list_needs(&run->events);
	bool stacks;

	if (!run_events_only(run))
		needs |= column_list_needs(&run->list) | stack_lines_needs(&run->stacks);
	stacks = config->live.slower_ms && config->live.traces >> LATENCY_OFFCPU & 1 &&
		 needs & (NEED_STACK | NEED_USTACK | NEED_KSTACK);
	run->sleep_stacks_wanted =
		stacks || (config->live.slower_ms && config->live.traces >> LATENCY_RUNQ & 1 &&
			   needs & NEED_RUNQ_WHY);
	run->interval.sleep_sums = stacks && config->stacks;
	if (!run_events_only(run))
		return;
	run->filter.no_samples = !run->sleep_stacks_wanted;
	run->filter.all_states |= run->sleep_stacks_wanted;
	run->filter.off_cpu |= run->sleep_stacks_wanted;
}

static int run_traces(struct run *run, struct error *e)
{
	struct column_list keys = run->list;
	const struct trace_kind *kinds[LATENCY_KIND_COUNT] = {0};
	size_t count = 0;

	_Static_assert(LATENCY_KIND_COUNT <= TRACE_KINDS_MAX, "room for all kinds");
	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (run->config->live.distributions && run->config->live.traces >> kind & 1 &&
		    !trace_rows[kind].single)
			kinds[count++] = &trace_rows[kind].kind;
	/* columns of recorded rows are far too many as keys */
	if (run->config->record) {
		int err;

		keys = (struct column_list){0};
		err = column_list_add(&keys, REPORT_COLUMNS_DEFAULT, true, e);
		if (err)
			return err;
	}
	distribution_table_init(&run->distributions, kinds, count, &keys);
	if (count)
		run->interval.distributions = &run->distributions;
	return 0;
}

/* Refuses options for the reading of user stacks if none are read. */
static int run_stacks_check(const struct run *run, struct error *e)
{
	const struct config *config = run->config;
	uint64_t needs = column_list_needs(&run->list) | stack_lines_needs(&run->stacks) |
			 filter_needs(&run->filter);
	const char *option = config->live.python			       ? "--python"
			     : config->live.frame_pointers		       ? "--fp"
			     : config->live.stack_bytes != STACK_BYTES_DEFAULT ? "--stack-bytes"
									       : NULL;

	if (!option || sample_needs_close(needs) & NEED_USTACK)
		return 0;
	return error_set(
		e, EINVAL, EXIT_USAGE,
		"%s is about user stacks: add --stacks, -G ufunc, --folded or --flame FILE",
		option);
}

/* Refuses --patience with columns of /proc values: these are valid only during a scan, and rows
 * would wait longer. */
static int run_patience_check(const struct run *run, struct error *e)
{
	if (!run->config->patience_us || !run->list.wide)
		return 0;
	return error_set(e, EINVAL, EXIT_USAGE,
			 "--patience can't go with columns of /proc/TID/stat, status and io, which "
			 "are those of the scan");
}

/* Refuses rows by program where other tables refer to the keys of rows. */
static int run_rows_check(const struct run *run, struct error *e)
{
	const struct config *config = run->config;

	if (!run->groups.names_programs || !(config->stacks || config->trace || config->by_time_us))
		return 0;
	return error_set(e, EINVAL, EXIT_USAGE, "column program can't go with %s: group by commsum",
			 config->stacks	 ? "--stacks"
			 : config->trace ? "--trace and --slower"
					 : "--by-time and --heatmap");
}

/* Sets the command line as typed, except for quotes. */
static void run_command(struct run *run)
{
	for (char **word = run->config->words; word && *word; word++)
		text_add_format(&run->command, "%s%s", run->command.length ? " " : "",
				run->command.length ? *word : "tsnap");
	run->interval.command = text_string(&run->command);
}

/* The kinds of time that are shared out, a bit each. If a filter refuses some samples of a state
 * and accepts others, it is open how much of the thread's time is meant, except in a replay, where
 * refused samples are counted, too. Sleep is also open, as only some of it is shown without -a. */
static unsigned int kinds_shared(const struct run *run)
{
	unsigned int kinds = 0;

	if (run->config->raw || (!filter_keeps_threads(&run->filter) && !run->config->replay))
		return 0;
	for (int kind = 0; kind < TIME_KINDS; kind++)
		if (filter_wants_state(&run->filter, time_kind_state(kind)) &&
		    (kind != TIME_ASLEEP || run->filter.all_states))
			kinds |= 1u << kind;
	return kinds;
}

static void run_split(struct run *run)
{
	if (!run->renderer->grouped)
		return;
	run->times.shared = kinds_shared(run);
	if (!run->times.shared)
		return;
	run->time_rows.times = &run->times;
	group_table_split(&run->groups, &run->times,
			  !filter_keeps_threads(&run->filter) ? REST_LEFT_OUT
			  : run->renderer->has_footer	      ? REST_LARGE_GROUPS
							      : REST_GROUPS);
	if (run->config->stacks)
		group_table_split(&run->stacks.groups, &run->times, REST_NOWHERE);
}

/* True if the column's value changes while a thread waits. */
static bool column_changes(const struct column *column)
{
	return column->offset == offsetof(struct sample, scan.time_us) ||
	       column->offset == offsetof(struct sample, scan.weight_us) ||
	       column->offset == offsetof(struct sample, now.state_us) ||
	       column->offset == offsetof(struct sample, call.us);
}

bool run_sums_up(const struct run *run)
{
	const struct column_list *list = &run->list;

	if (!run->renderer->grouped || run->config->record || run->time_rows.step_us ||
	    run->path.wanted || expression_reads(&run->filter.expression, column_changes))
		return false;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY && column_changes(list->items[i]))
			return false;
	return true;
}

int run_prepare(struct run *run, struct error *e)
{
	int err;

	run->renderer = run->config->mode == MODE_FORMAT   ? run->config->format
			: run->config->mode == MODE_RECORD ? &renderer_csv
							   : &renderer_report;
	if (run->config->report)
		run->renderer = run->renderer->of_groups;
	if (run->config->findings && run->config->mode == MODE_FORMAT)
		run->renderer = &renderer_json_findings;
	run_times(run);
	err = run_filter(run, e);
	if (!err)
		err = run_columns(run, e);
	if (!err)
		err = run_output_check(run->config->output, e);
	if (!err && !run->config->replay)
		err = run_output_check(run->config->stack_dict, e);
	if (!err)
		err = run_events(run, e);
	if (err)
		return err;
	group_table_init(&run->groups, &run->list);
	time_rows_init(&run->time_rows, run->config->by_time_us, &run->list);
	stack_lines_init(&run->stacks, (size_t)run->config->stacks, &run->list,
			 run->config->off_wake);
	run_sleep_stacks(run);
	run_split(run);
	err = run_path_begin(run, e);
	if (!err)
		err = run_rows_check(run, e);
	if (!err)
		err = run_stacks_check(run, e);
	if (!err)
		err = run_patience_check(run, e);
	if (err)
		return err;
	if (run->config->stacks)
		run->interval.stacks = &run->stacks;
	if (run->config->chains) {
		chain_report_init(&run->chains, (size_t)run->config->stacks);
		run->interval.chains = &run->chains;
		if (run->times.shared)
			chain_report_split(&run->chains, &run->times);
	}
	if (run->config->findings) {
		findings_init(&run->findings);
		run->interval.findings = &run->findings;
		run->interval.findings_alone = !run->config->columns;
		run->interval.rows_folded = !run->config->all_rows;
		run->interval.verbose = run->config->verbose;
		if (run->times.shared)
			findings_split(&run->findings, &run->times);
	}
	err = run_traces(run, e);
	if (err)
		return err;
	if (run->renderer->kind == RENDERER_COUNTERS)
		run->interval.metrics = &run->metrics;
	interval_fit(&run->interval, run->config->all_rows);
	run_command(run);
	run->interval.grid = run->config->by_time_us ? &run->time_rows.grid : &run->grid;
	if (run->config->heatmap)
		run->interval.heatmap = &run->time_rows;
	else if (run->config->by_time_us)
		run->interval.row_limit = 0; /* later steps matter as much as the first ones */
	run->interval.tally = &run->tally;
	run->interval.formulas_kept_out = run->config->csv_safe;
	run->interval.recording = run->config->replay;
	if (run->interval.recording && !strcmp(run->interval.recording, "-"))
		run->interval.recording = "standard input";
	return 0;
}
