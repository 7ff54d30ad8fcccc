/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The loop: take a scan from the source, keep it, show what was kept. The way of the data:
 *
 *   source->next() --> scan --> grouped: group_table, at the end of an interval --> grid --> page
 *                  --> part --> rows: grid at once                              --> page
 *   source->traced() (--trace) --> distribution_table, at the end of an interval --> page
 *   page --> renderer --> text --> standard output
 *
 * What comes from where: the source has applied the filter and filled what the columns need.
 */
#include "run.h"
#include "base/output.h"
#include "base/output_file.h"
#include "base/signals.h"
#include "report/distribution.h"
#include "report/group.h"
#include "report/renderer.h"
#include "report/value.h"
#include "trace_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_ROWS 20 /* groups shown on a terminal */
#define TERMINAL_WIDTH_DEFAULT 80
#define SAMPLES_REFUSED "samples in more groups than tsnap keeps"

struct run {
	const struct config *config;
	const struct renderer *renderer;
	struct text *into; /* NULL: written where the configuration says */
	struct column_list list;
	struct filter filter;
	struct source *source;
	struct group_table groups;
	struct distribution_table distributions; /* of --trace */
	struct tally tally;			 /* since the last page */
	struct grid grid;
	struct text out, command;
	struct page page;
	struct source_facts facts_before; /* as of the last page */
	int64_t interval_us;		  /* of a page; 0: one page at the end */
	int64_t page_us;  /* time in the page so far; below 0 when the last one took some of it */
	int64_t total_us; /* time in the whole run */
	int64_t end_us;	  /* total to end at; 0: none */
	int64_t shown;	  /* pages, or scans when not grouped */
	int64_t refused;  /* samples without a group, in all pages */
	bool in_scan;	  /* of which parts were taken; */
	struct scan part; /* the last one, without its samples */
	struct error *e;
};

/* Whether a page is of an interval. With --trace, formats for machines write distributions instead
 * of samples. */
static bool run_grouped(const struct run *run)
{
	return run->renderer->grouped || run->config->traces;
}

static bool is_file(const char *file)
{
	return file && strcmp(file, "-") != 0;
}

static int output_fail(const char *file, int err, struct error *e)
{
	return error_set(e, -err, EXIT_FAILED, "%s: %s", file, strerror(-err));
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

/* Width, row limit and colour are for terminals; all else is never cut. */
static void page_fit(struct page *page)
{
	const char *columns = getenv("COLUMNS"), *no_color = getenv("NO_COLOR");
	struct winsize size = {0};
	long typed = columns ? strtol(columns, NULL, 10) : 0;

	if (!isatty(STDOUT_FILENO))
		return;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	page->width = typed > 0 && typed < 10000 ? (size_t)typed : size.ws_col;
	if (!page->width)
		page->width = TERMINAL_WIDTH_DEFAULT;
	page->row_limit = TERMINAL_ROWS;
	page->colour = !no_color || !*no_color;
}

static int run_columns(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	const struct renderer *renderer = run->renderer;
	bool grouped = run_grouped(run);
	const char *names = config->columns;
	int err = 0;

	/* distributions have the keys of a report */
	if (!names)
		names = grouped && !renderer->grouped ? REPORT_COLUMNS_DEFAULT : renderer->columns;
	if (renderer->before)
		err = column_list_add(&run->list, renderer->before, grouped, e);
	if (!err)
		err = config->by ? column_list_add_keys(&run->list, config->by, e)
				 : column_list_add(&run->list, names, grouped, e);
	/* rows of threads that sleep: what chose them, also for a replay */
	if (!err && !config->columns && !grouped && filter_wants_work(&run->filter))
		err = column_list_add(&run->list, "why", grouped, e);
	if (!err && config->more_columns)
		err = column_list_add(&run->list, config->more_columns, grouped, e);
	run->page.root_count = run->list.count;
	if (err || !renderer->behind)
		return err;
	for (size_t i = 0; i < run->list.count; i++)
		if (run->list.items[i]->role != ROLE_KEY)
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s is told of groups; it can't be a frame of a stack",
					 run->list.items[i]->name);
	return column_list_add(&run->list, renderer->behind, grouped, e);
}

static int run_filter(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	int err = 0;

	run->filter.all_states = config->all_states;
	run->filter.on_cpu = config->on_cpu;
	run->filter.off_cpu = config->off_cpu;
	if (config->comm)
		filter_set_pattern(&run->filter, "comm", config->comm);
	if (config->cgroup)
		filter_set_pattern(&run->filter, "cgroup", config->cgroup);
	if (config->process)
		err = filter_set_process(&run->filter, config->process, e);
	if (!err && config->threads)
		err = filter_set_threads(&run->filter, config->threads, e);
	if (!err && config->user)
		err = filter_set_user(&run->filter, config->user, config->replay != NULL, e);
	if (!err && config->filter)
		err = filter_set_expression(&run->filter, config->filter, e);
	return err;
}

/* How long, and how often a page. */
static void run_times(struct run *run)
{
	const struct config *config = run->config;

	run->end_us = config->duration_us;
	if (!run_grouped(run))
		return;
	run->interval_us = config->interval_us;
	if (!run->interval_us && config->count)
		run->interval_us = DURATION_DEFAULT_US;
	/* a recording is told whole */
	if (!run->interval_us && !run->end_us && !config->replay)
		run->end_us = DURATION_DEFAULT_US;
}

static void run_traces(struct run *run)
{
	const struct trace_kind *kinds[LATENCY_KIND_COUNT];
	size_t count = 0;

	_Static_assert(LATENCY_KIND_COUNT <= TRACE_KINDS_MAX, "room for all kinds");
	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++)
		if (run->config->traces >> kind & 1)
			kinds[count++] = &trace_rows[kind].kind;
	distribution_table_init(&run->distributions, kinds, count, &run->list);
	if (count)
		run->page.distributions = &run->distributions;
}

/* As it was typed, but for quotes. */
static void run_command(struct run *run)
{
	for (char **word = run->config->words; word && *word; word++)
		text_add_format(&run->command, "%s%s", run->command.length ? " " : "",
				run->command.length ? *word : "tsnap");
	run->page.command = text_string(&run->command);
}

static int run_prepare(struct run *run, struct error *e)
{
	static const char *const renderer_names[] = {
		[MODE_REPORT] = "report", [MODE_CSV] = "csv",	  [MODE_JSON] = "json",
		[MODE_FOLDED] = "folded", [MODE_FLAME] = "flame",
	};
	int err;

	run->renderer = renderer_find(renderer_names[run->config->mode]);
	run_times(run);
	err = run_filter(run, e);
	if (!err)
		err = run_columns(run, e);
	if (!err)
		err = run_output_check(run->config->flame, e);
	if (err)
		return err;
	group_table_init(&run->groups, &run->list);
	run_traces(run);
	page_fit(&run->page);
	run_command(run);
	run->page.grid = &run->grid;
	run->page.tally = &run->tally;
	run->page.recording = run->config->replay;
	if (run->page.recording && !strcmp(run->page.recording, "-"))
		run->page.recording = "standard input";
	return 0;
}

static int run_write(struct run *run, struct error *e)
{
	int err = 0;

	if (!run->out.length)
		return 0;
	if (run->into)
		text_add(run->into, text_string(&run->out), run->out.length);
	else
		err = run_output(run->config->flame, &run->out, e);
	text_clear(&run->out);
	return err;
}

static int64_t since(int64_t now, int64_t before)
{
	return now == ABSENT || before == ABSENT ? now : counted_since(now, before);
}

/* now: as of now; becomes what is new since before. */
static void facts_subtract(struct source_facts *now, const struct source_facts *before)
{
	now->own_cpu_ns = since(now->own_cpu_ns, before->own_cpu_ns);
	now->bpf_ns = since(now->bpf_ns, before->bpf_ns);
	now->bpf_runs = since(now->bpf_runs, before->bpf_runs);
	self_cost_subtract(&now->self, &before->self);
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

/* What --trace measured since the last time. all: until now. */
static int run_take_traced(struct run *run, bool all, struct error *e)
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
}

/* Shows the groups kept since the last page, and starts anew. */
static int run_show(struct run *run, struct error *e)
{
	struct source_facts now, page;
	int err = run_take_traced(run, true, e);

	if (err)
		return err;
	if (run->source->account && run->renderer->accounts)
		run->source->account(run->source, account_take, run);
	run->source->describe(run->source, &now);
	page = now;
	facts_subtract(&page, &run->facts_before);
	source_facts_miss_any(&page, SAMPLES_REFUSED, (uint64_t)run->groups.refused);
	run->refused = sum(run->refused, run->groups.refused);
	source_facts_miss_any(&page, "events in more distributions than tsnap keeps",
			      (uint64_t)run->distributions.refused);
	run->page.facts = &page;
	if (run->renderer->grouped) {
		run->facts_before = now;
		grid_fill_groups(&run->grid, &run->groups, &run->tally);
	} else {
		distribution_rows_fill(&run->distributions, &run->tally, &run->grid);
	}
	run->renderer->add(&run->out, &run->page);
	run->page.facts = NULL;
	group_table_clear(&run->groups);
	distribution_table_clear(&run->distributions);
	run->tally = (struct tally){0};
	run->shown++;
	return run_write(run, e);
}

/* Time before the scan in which nobody was seen, and of which a recording has no rows. It may end
 * an interval; whole intervals of it are passed over. */
static int run_take_silence(struct run *run, const struct scan *scan, struct error *e)
{
	int64_t left = scan->silent_us, first = run->interval_us - run->page_us;
	int64_t from_us = scan->time_us - scan->weight_us - left;
	int err;

	if (!left)
		return 0;
	run->total_us = sum(run->total_us, left);
	if (run->interval_us && left >= first) {
		tally_add_silence(&run->tally, from_us, first, ratio(first, 1, scan->weight_us));
		err = run_show(run, e);
		if (err)
			return err;
		run->page_us = 0;
		left = (left - first) % run->interval_us;
		from_us = scan->time_us - scan->weight_us - left;
	}
	tally_add_silence(&run->tally, from_us, left, ratio(left, 1, scan->weight_us));
	run->page_us = sum(run->page_us, left);
	return 0;
}

static int run_take_groups(struct run *run, const struct scan *part)
{
	int err = run->in_scan ? 0 : run_take_silence(run, part, run->e);

	for (size_t i = 0; !err && i < part->count; i++)
		group_table_add(&run->groups, &part->samples[i]);
	return err;
}

static int run_take_rows(struct run *run, const struct scan *part)
{
	grid_fill_rows(&run->grid, &run->list, part);
	run->renderer->add(&run->out, &run->page);
	return 0;
}

static int run_take(struct run *run, const struct scan *part)
{
	int err = run_grouped(run) ? run_take_groups(run, part) : run_take_rows(run, part);

	run->in_scan = true;
	run->part = *part;
	run->part.count = 0;
	return err;
}

static int run_take_part(void *taker, const struct scan *part)
{
	struct run *run = taker;
	int err = run_take(run, part);

	if (run_grouped(run))
		tally_add_part(&run->tally, part);
	/* no thread of the scan waits until somebody has read those before it */
	if (!err && output_is_ready(STDOUT_FILENO, run->out.length))
		err = run_write(run, run->e);
	return err;
}

/* All of the scan has been taken: its time has passed. */
static int run_end_groups(struct run *run, const struct scan *scan, struct error *e)
{
	tally_add(&run->tally, scan);
	run->page_us = sum(run->page_us, scan->weight_us);
	/* ends where it is nearest to the interval; the next page makes up for the rest */
	if (!run->interval_us || sum(run->page_us, scan->weight_us / 2) < run->interval_us)
		return 0;
	run->page_us = (run->page_us - run->interval_us) % run->interval_us;
	return run_show(run, e);
}

static int run_end_rows(struct run *run, const struct scan *scan, struct error *e)
{
	run->total_us = sum(run->total_us, scan->silent_us);
	run->shown++;
	return run_write(run, e);
}

static bool run_ended(const struct run *run, int64_t weight_us)
{
	return signals_stop() || (run->config->count && run->shown >= run->config->count) ||
	       (run->end_us && sum(run->total_us, weight_us / 2) >= run->end_us);
}

static int run_loop(struct run *run, struct error *e)
{
	struct error unsaid = {0};
	struct scan scan = {0};
	int err = 0;

	if (run->renderer->begin) {
		run->renderer->begin(
			&run->out, run->config->traces ? distribution_rows_list(&run->distributions)
						       : &run->list);
		err = run_write(run, e);
	}
	while (!err && !run_ended(run, scan.weight_us)) {
		int more = run->source->next(run->source, &scan, e);

		if (more == -EINTR)
			continue;
		if (more <= 0) {
			err = more;
			break;
		}
		err = run_take(run, &scan);
		if (!err)
			err = run_take_traced(run, false, e);
		if (!err)
			err = run_grouped(run) ? run_end_groups(run, &scan, e)
					       : run_end_rows(run, &scan, e);
		run->in_scan = false;
		run->total_us = sum(run->total_us, scan.weight_us);
		if (!err && run->source->release && (!run_grouped(run) || !run->tally.scans))
			run->source->release(run->source);
	}
	if (run->in_scan) /* and no more of it comes */
		tally_add(&run->tally, &run->part);
	/* what there is, unless a page has just told it */
	if (!err && run_grouped(run) && (run->tally.scans || !run->shown))
		return run_show(run, e);
	if (err == -EOWNERDEAD && run_grouped(run) && run->tally.scans)
		run_show(run, &unsaid); /* what there is no more of is worse than that */
	error_done(&unsaid);
	return err;
}

/* Before the first row, as rows and folded stacks have no foot: what none will have. */
static void run_tell_absent(struct run *run, void (*tell)(const char *lines))
{
	struct text lines = {0};

	for (size_t i = 0; i < run->facts_before.absent_count; i++) {
		text_add_string(&lines, "absent on this host: ");
		absent_add(&lines, &run->list, &run->facts_before.absent[i]);
		text_add_char(&lines, '\n');
	}
	tell(text_string(&lines));
	text_done(&lines);
}

/* Rows and folded stacks have no foot: tells what was missed, or all of the cost where it was asked
 * for. */
static void run_tell_foot(struct run *run, void (*tell)(const char *lines))
{
	struct source_facts facts;
	struct text notes = {0};

	run->source->describe(run->source, &facts);
	source_facts_miss_any(&facts, SAMPLES_REFUSED, (uint64_t)run->refused);
	if (facts.self.asked) {
		facts_subtract(&facts, &run->facts_before);
		page_add_self(&notes, &(struct page){.facts = &facts});
	}
	for (size_t i = 0; i < facts.missed_count && !facts.self.asked; i++) {
		if (!facts.missed[i].count || facts.missed[i].natural)
			continue;
		text_add_string(&notes, "missed: ");
		missed_add(&notes, &facts.missed[i]);
		text_add_char(&notes, '\n');
	}
	tell(text_string(&notes));
	text_done(&notes);
}

static void run_done(struct run *run)
{
	if (run->source)
		run->source->close(run->source);
	group_table_done(&run->groups);
	distribution_table_done(&run->distributions);
	grid_done(&run->grid);
	text_done(&run->out);
	text_done(&run->command);
	filter_done(&run->filter);
}

static int run_any(struct run run, source_opener *open_source, void (*tell)(const char *lines),
		   struct error *e)
{
	const struct config *config = run.config;
	int err = run_prepare(&run, e);

	if (!err) {
		uint64_t needs = column_list_needs(&run.list);

		if (run.renderer->accounts)
			needs = sample_needs_close(needs | NEED_PROCESSES);
		err = open_source(config, &run.filter, needs, &run.source, e);
		if (!err) {
			run.source->take = run_take_part;
			run.source->taker = &run;
			run.source->describe(run.source, &run.facts_before);
			if (run.facts_before.remarks)
				tell(run.facts_before.remarks);
			if (!run.renderer->footed)
				run_tell_absent(&run, tell);
			if (config->verbose && run.facts_before.chosen)
				tell(run.facts_before.chosen);
			err = run_loop(&run, e);
			if (!run.renderer->footed)
				run_tell_foot(&run, tell);
		} else if (signals_stop()) {
			err = 0; /* stopped before there was anything to show */
		}
	}
	run_done(&run);
	return err == -EPIPE ? 0 : err;
}

int run(const struct config *config, source_opener *open_source, void (*tell)(const char *lines),
	struct error *e)
{
	return run_any((struct run){.config = config, .e = e}, open_source, tell, e);
}

int run_into(struct text *text, const struct config *config, source_opener *open_source,
	     void (*tell)(const char *lines), struct error *e)
{
	return run_any((struct run){.config = config, .e = e, .into = text}, open_source, tell, e);
}
