/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/run_columns.h"
#include "render/fold.h"
#include "render/renderer.h"
#include "sample/waker_stack.h"

#include <errno.h>

/* columns of a report of named processes, after avg_thr: on 80 characters, too, it has room for
 * what they wait for. Recordings seldom have stacks, which show the function */
#define PROCESS_COLUMNS "pid,comm,state,state_us,syscall,waits_on,chain"
#define LIVE_PROCESS_COLUMNS PROCESS_COLUMNS ",function"
#define PATH_COLUMNS "path_end,comm,syscall,waits_on,path"

/* Columns with --critical-path: rows name the process of the path, too. Stacks have their own
 * columns. */
static const char *path_columns(const struct report *report)
{
	if (report->renderer->behind)
		return "path_of,path_end,comm";
	return report->grouped ? PATH_COLUMNS
			       : "timestamp,weight_us,path_of_tid,path_of,tid,pid," PATH_COLUMNS;
}

/* Adds the column of --sort to those of the report, if it is none of them. */
static int sort_add(struct report *report, const char *name, struct error *e)
{
	struct column_list one = {.count = 0};
	int err = column_list_add(&one, name, true, e);

	if (!err && one.count != 1)
		err = error_set(e, EINVAL, EXIT_USAGE, "--sort %s: give one column", name);
	report->sort = one.items[0];
	return err ? err : column_list_add(&report->list, name, true, e);
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

/* Moves columns whose values differ from row to row behind those that a thread's rows have in
 * common: rows of a recording then take a tenth less. */
static int values_last(struct column_list *list, struct error *e)
{
	struct column_list values = {.count = 0}, others = *list;
	int err = column_list_add(&values, "cpu,state_us,cpu_us,runq_us,sleep_us", false, e);

	list->count = 0;
	for (int last = 0; last < 2; last++)
		for (size_t i = 0; i < others.count; i++)
			if (column_list_has(&values, others.items[i]) == last)
				list->items[list->count++] = others.items[i];
	return err;
}

/* Adds what a recording has by default beyond rows of --csv: all that explains a wait afterwards.
 * Of threads that only sleep, which -a shows, there is nothing to explain. */
static int record_columns(struct report *report, struct error *e)
{
	return column_list_add(&report->list,
			       filter_wants_work(&report->filter)
				       ? "ppid,script,findings,connection,serves"
				       : "ppid,script",
			       false, e);
}

static int columns_choose(const struct config *config, struct report *report, size_t *root_count,
			  struct error *e)
{
	const struct renderer *renderer = report->renderer;
	const char *path = config->report.critical_path;
	bool grouped = report->grouped;
	bool of_processes = config->named && renderer->kind == RENDERER_REPORT &&
			    !config->columns && !config->by && !path;
	const char *names;
	int err = 0;

	/* distributions have the keys of a report */
	names = path				 ? path_columns(report)
		: of_processes && config->replay ? PROCESS_COLUMNS
		: of_processes			 ? LIVE_PROCESS_COLUMNS
		: grouped && !renderer->grouped	 ? REPORT_COLUMNS_DEFAULT
		: config->by_chain		 ? FOLD_CHAIN_ROOT
						 : renderer->columns;
	/* a replay needs the time */
	if (config->mode == MODE_RECORD)
		err = column_list_add(&report->list, "timestamp", grouped, e);
	if (!err && renderer->before && !columns_have_threads(config->columns))
		err = column_list_add(&report->list, of_processes ? "avg_thr" : renderer->before,
				      grouped, e);
	if (!err)
		err = query_columns(&report->query, names, grouped, &report->list, e);
	/* rows of sleeping threads have the wait class that chose them, for a replay, too */
	if (!err && !config->columns && !grouped && filter_wants_work(&report->filter))
		err = column_list_add(&report->list, "why", grouped, e);
	if (!err && !config->columns && config->mode == MODE_RECORD)
		err = record_columns(report, e);
	if (!err && config->more_columns)
		err = column_list_add(&report->list, config->more_columns, grouped, e);
	if (!err && !config->columns && config->mode == MODE_RECORD)
		err = values_last(&report->list, e);
	if (!err && config->stack_dict && !config->replay)
		err = column_list_add(&report->list, "ustack,kstack", grouped, e);
	if (!err && config->by_chain)
		err = column_list_add(&report->list, FOLD_CHAIN_ROOT, grouped, e);
	if (!err && config->sort)
		err = sort_add(report, config->sort, e);
	*root_count = report->list.count;
	if (err || !renderer->behind)
		return err;
	for (size_t i = 0; i < report->list.count; i++)
		if (report->list.items[i]->role != ROLE_KEY)
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s is a value of a report's groups: it can't be a frame "
					 "or a label",
					 report->list.items[i]->name);
	err = column_list_add(&report->list,
			      config->by_chain ? FOLD_CHAIN_COLUMNS : renderer->behind, grouped, e);
	if (!err && config->report.off_wake)
		err = column_list_add(&report->list, WAKER_COLUMNS, grouped, e);
	return err;
}

int run_columns(const struct config *config, struct report *report, size_t *root_count,
		struct error *e)
{
	int err = query_filter(&report->query, &report->filter, e);

	if (!err)
		err = columns_choose(config, report, root_count, e);
	report->of_stacks =
		report->renderer->behind && column_list_needs(&report->list) & NEED_STACK;
	if (err || config->report.critical_path || config->replay ||
	    !(column_list_needs(&report->list) & NEED_PATH))
		return err;
	return error_set(e, EINVAL, EXIT_USAGE,
			 "the columns path_end to path_of_tid need --critical-path PID|NAME, or a "
			 "recording that has them");
}

int run_columns_check(const struct config *config, const struct report *report, struct error *e)
{
	uint64_t needs = report_needs(report) | filter_needs(&report->filter);
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
