/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a run and its parts; for src/cli/run*.c only. */
#ifndef TSNAP_CLI_RUN_STATE_H
#define TSNAP_CLI_RUN_STATE_H

#include "report/chain_report.h"
#include "report/critical_path.h"
#include "report/distribution.h"
#include "report/event_list.h"
#include "report/findings.h"
#include "report/late_waits.h"
#include "report/group_split.h"
#include "report/metric_totals.h"
#include "render/renderer.h"
#include "report/sleep_stacks.h"
#include "report/sleepers.h"
#include "recording/stack_dict.h"
#include "report/stack_lines.h"
#include "cli/run.h"
#include "report/time_rows.h"

struct run {
	const struct config *config;
	const struct renderer *renderer;
	void (*report)(const char *lines); /* writes to standard error */
	struct text *into; /* text that gets the output; NULL: it is written as configured */
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
	struct findings findings;		 /* --findings */
	struct column_list unrecorded;		 /* columns that a recording lacks */
	struct critical_path path;		 /* --critical-path */
	struct filter path_filter;		 /* processes of --critical-path */
	struct event_list events;		 /* --slower, --trace exec */
	struct sleep_stacks sleep_stacks;	 /* stacks of the sleeps among events */
	bool sleep_stacks_wanted;
	struct metric_totals metrics; /* --metrics */
	struct sleepers sleepers;     /* contents of an interval without samples */
	struct tally tally;	      /* totals since the last interval */
	struct time_rows time_rows;   /* --by-time */
	struct grid grid;
	const struct column *sort; /* --sort; NULL: not given */
	struct text out, command;
	struct interval interval;
	struct source_status status_before; /* status as of the last interval */
	int64_t interval_us;		    /* length of an interval; 0: one interval at the end */
	int64_t passed_us; /* time in the interval so far; negative: the interval before overran */
	int64_t total_us;  /* time in the whole run */
	/* scan time up to which an earlier worker has delivered all (keeper.h), until the first
	 * scan of this one; 0: none. Time of the last scan; scans between those two that no report
	 * has told */
	int64_t gap_since_ns, scan_ns, gap_scans;
	int64_t end_us;	   /* limit of total_us; 0: none */
	int64_t shown;	   /* number of shown intervals, or of scans if not grouped */
	int64_t refused;   /* samples without a group, in all intervals */
	int64_t stackless; /* samples before the first with a stack; 0 after it */
	bool stacks_seen;  /* a sample had a stack */
	bool in_scan;	   /* batches of the present scan were taken */
	struct scan batch; /* last batch of the scan, without its samples */
	struct error *e;
};

/* True if output is made for an interval, not for a scan. With --trace, formats for machines write
 * distributions instead of samples, and with --slower events, as they come. */
static inline bool run_grouped(const struct run *run)
{
	return run->renderer->grouped || (run->config->live.distributions && !run->config->record);
}

static inline bool run_lists_events(const struct run *run)
{
	return run->config->live.events;
}

/* True if only events are written, and no samples. */
static inline bool run_events_only(const struct run *run)
{
	return run_lists_events(run) && !run_grouped(run) && !run->config->record;
}

/* True if options select only some threads. */
static inline bool run_filters(const struct run *run)
{
	const struct config *config = run->config;

	return config->live.process || config->live.threads || config->user || config->comm ||
	       config->live.cgroup || config->filter;
}

/* True if the output is made of stacks. */
static inline bool run_shows_stacks(const struct run *run)
{
	return run->renderer->behind && column_list_needs(&run->list) & NEED_STACK;
}

/* True if the source is to deliver accounts: times that no sample has. */
static inline bool run_accounts(const struct run *run)
{
	return !run->path.wanted && (run->renderer->accounts || run->times.shared);
}

/* run_prepare.c: prepares all that config requests, except the source. 0 or -errno with e. */
int run_prepare(struct run *run, struct error *e);
/* True if what is shown is the same whether a thread that waits is in each scan, or in one that
 * stands for several. */
bool run_sums_up(const struct run *run);

/* run_interval.c. run_show() shows the groups since the last interval, and starts anew.
 * run_take_traced() takes what --trace has measured since the last call; all: until now.
 * run_write() writes the rendered text. 0 or -errno with e. */
int run_show(struct run *run, struct error *e);
int run_take_traced(struct run *run, bool all, struct error *e);
int run_write(struct run *run, struct error *e);
/* Adds a sample to the groups and to all that is made of samples with them. */
void run_add_sample(void *run, const struct sample *sample, struct exact_note note);
/* Shares the exact times of the samples added so far out among the groups. */
void run_share_out(struct run *run);
/* Adds a row that is written with the scan. */
void run_add_row(struct run *run, const struct sample *sample);
/* run_path.c, which does nothing without --critical-path. run_path_begin() prepares it;
 * run_path_needs() are its needs of samples; run_path_take() takes samples; run_path_end_scan()
 * adds the samples whose paths are known by now; run_path_settle() adds all, so that texts of
 * samples may be freed. */
int run_path_begin(struct run *run, struct error *e);
uint64_t run_path_needs(const struct run *run);
void run_path_take(struct run *run, const struct scan *batch);
void run_path_end_scan(struct run *run);
void run_path_settle(struct run *run);
/* run_sleepers.c: finds the contents of an interval without samples. */
void run_find_sleepers(struct run *run);
/* Takes the new single events. */
void run_take_events(struct run *run);
/* Notes the stacks of sleeps, before the events that end them. */
void run_note_sleeps(struct run *run, const struct scan *batch);
/* Lets the source free texts that are not used any more. */
void run_release(struct run *run);
/* Report what has no place in rows and folded stacks, as they have no footer: before the first row,
 * columns that no row will have; after the last one, what was missed, or the whole cost if
 * requested. */
void run_report_absent(struct run *run);
void run_report_footer(struct run *run);
/* Notes the scan's time. Returns the number of scans missing before it, if it is the first one
 * after a worker that was given up: what that one had not delivered is lost, too. */
int64_t run_find_gap(struct run *run, const struct scan *scan);
/* Reports at once that the clock was set before the scan: see struct scan. */
void run_report_clock(const struct run *run, const struct scan *scan);

#endif
