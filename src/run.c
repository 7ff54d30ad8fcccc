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
#include "run_state.h"
#include "base/output.h"
#include "base/signals.h"
#include "report/value.h"

#include <errno.h>
#include <unistd.h>

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
