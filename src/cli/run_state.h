/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a run and its parts; for src/cli/run*.c only. */
#ifndef TSNAP_CLI_RUN_STATE_H
#define TSNAP_CLI_RUN_STATE_H

#include "report/chain_report.h"
#include "report/critical_path.h"
#include "report/distribution.h"
#include "report/event_list.h"
#include "report/late_waits.h"
#include "report/group_split.h"
#include "report/metric_totals.h"
#include "render/renderer.h"
#include "report/sleep_stacks.h"
#include "report/sleepers.h"
#include "recording/stack_dict_file.h"
#include "report/stack_lines.h"
#include "cli/run.h"
#include "report/time_rows.h"

struct run {
	const struct config *config;
	const struct renderer *renderer;
	struct text *into; /* NULL: written where the configuration says */
	struct column_list list;
	struct filter filter;
	struct filter when; /* --when */
	struct source *source;
	struct group_table groups;
	struct late_waits late_waits;		 /* samples that are not in groups yet */
	struct exact_times times;		 /* shared out among groups and stacks */
	struct distribution_table distributions; /* --trace */
	struct stack_dict_file stack_dict;	 /* --stack-dict, written */
	struct stack_lines stacks;		 /* --stacks */
	struct chain_report chains;		 /* --chains */
	struct critical_path path;		 /* --critical-path */
	struct filter path_filter;		 /* processes of --critical-path */
	struct event_list events;		 /* --slower, --trace exec */
	struct sleep_stacks sleep_stacks;	 /* stacks of the sleeps among events */
	bool sleep_stacks_wanted;
	struct metric_totals metrics; /* --metrics */
	struct sleepers sleepers;     /* contents of an interval without samples */
	struct tally tally;	      /* since the last interval */
	struct time_rows time_rows;   /* --by-time */
	struct grid grid;
	struct text out, command;
	struct interval interval;
	struct source_status status_before; /* status as of the last interval */
	int64_t interval_us;		    /* length of an interval; 0: one interval at the end */
	int64_t passed_us; /* time in the interval so far; negative: the interval before overran */
	int64_t total_us;  /* time in the whole run */
	int64_t end_us;	   /* total to end at; 0: none */
	int64_t shown;	   /* intervals, or scans when not grouped */
	int64_t refused;   /* samples without a group, in all intervals */
	int64_t stackless; /* samples so far, as long as none had a stack; then 0 */
	bool stacks_seen;  /* a sample had a stack */
	bool in_scan;	   /* parts of the present scan were taken */
	struct scan batch; /* last batch of the scan, without its samples */
	struct error *e;
};

/* True if a report is of an interval, not of a scan. With --trace, formats for machines write
 * distributions instead of samples, and with --slower events, which they write when they come. */
static inline bool run_grouped(const struct run *run)
{
	return run->renderer->grouped || (run->config->distributions && !run->config->record);
}

static inline bool run_lists_events(const struct run *run)
{
	return run->config->events;
}

/* True if events alone are written, and no samples. */
static inline bool run_events_only(const struct run *run)
{
	return run_lists_events(run) && !run_grouped(run) && !run->config->record;
}

/* True if not all threads were asked for. */
static inline bool run_filters(const struct run *run)
{
	const struct config *config = run->config;

	return config->process || config->threads || config->user || config->comm ||
	       config->cgroup || config->filter;
}

/* True if what is written is made of stacks. */
static inline bool run_shows_stacks(const struct run *run)
{
	return run->renderer->behind && column_list_needs(&run->list) & NEED_STACK;
}

/* True if the source is asked for what no sample tells. */
static inline bool run_accounts(const struct run *run)
{
	return !run->path.wanted && (run->renderer->accounts || run->times.shared);
}

/* run_prepare.c: what config asks for, all but the source. 0 or -errno with e. */
int run_prepare(struct run *run, struct error *e);

/* run_interval.c: shows the groups kept since the last interval, and starts anew; takes what
 * --trace measured since the last time, all: until now; writes what was rendered. 0 or -errno with
 * e. */
int run_show(struct run *run, struct error *e);
int run_take_traced(struct run *run, bool all, struct error *e);
int run_write(struct run *run, struct error *e);
/* Adds a sample to the groups and what goes along with them. */
void run_add_sample(void *run, const struct sample *sample, struct exact_note note);
/* Gives the groups the exact times of what was added so far. */
void run_share_out(struct run *run);
/* A row that is written with the scan. */
void run_add_row(struct run *run, const struct sample *sample);
/* run_path.c, which does nothing without --critical-path: what it needs of samples; takes samples,
 * which become others; adds those whose paths are known by now; adds all, so that texts of samples
 * may go. */
int run_path_begin(struct run *run, struct error *e);
uint64_t run_path_needs(const struct run *run);
void run_path_take(struct run *run, const struct scan *batch);
void run_path_end_scan(struct run *run);
void run_path_settle(struct run *run);
/* run_sleepers.c: finds what an interval without samples tells instead. */
void run_find_sleepers(struct run *run);
/* Takes the single events that came. */
void run_take_events(struct run *run);
/* Takes note of stacks of sleeps, before the events that end them. */
void run_note_sleeps(struct run *run, const struct scan *batch);
/* Lets the source have texts back that nobody holds. */
void run_release(struct run *run);
/* Tell what rows and folded stacks have no footer for: before the first row columns that none will
 * have, and behind the last one what was missed, or all of the cost where it was asked for. */
void run_report_absent(struct run *run, void (*report)(const char *lines));
void run_report_footer(struct run *run, void (*report)(const char *lines));

#endif
