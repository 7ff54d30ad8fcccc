/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renderers write an interval into a text buffer. They see the grid and the facts around it, never
 * a sample or a terminal. A new format is a file with its struct renderer, which is declared here,
 * and has an option of its name: a row of cli/option_table.c.
 */
#ifndef TSNAP_RENDER_RENDERER_H
#define TSNAP_RENDER_RENDERER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "report/grid.h"
#include "report/tally.h"
#include "sample/source.h"

struct event_list;
struct finding;
struct findings;
struct report;
struct report_part;
struct stack_lines;

/* What is shown of an interval, or of a batch of rows: a grid, and the facts around it. */
struct interval {
	const struct report *report; /* parts that add to it; NULL: none */
	const struct grid *grid;
	const struct tally *tally; /* tally of a grouped interval */
	/* status of the source for a grouped interval, since the one before it */
	const struct source_status *status;
	const struct stack_lines *stacks; /* stacks of the grid's rows (--stacks); NULL: none */
	const char *recording;		  /* recording that is replayed; NULL: live */
	const char *host; /* recordings of several are replayed, and this is of one; else NULL */
	/* columns of the grid and the filter that the recording lacks; NULL: none */
	const struct column_list *unrecorded;
	const char *command; /* command line as typed; NULL: not known */
	size_t root_count;   /* columns before renderer->behind */
	size_t width;	     /* limit of a line's width; 0: any width */
	size_t row_limit;    /* rows of events and distributions shown; 0: all */
	size_t height;	     /* lines of the window; 0: not known, or all rows are wanted */
	void *state;	     /* the renderer's own, of its state_bytes, zero at first */
	bool colour;
	bool rows_folded;	/* rows of less than half a per cent are summed up everywhere */
	bool follows;		/* another report precedes it */
	bool verbose;		/* remarks and details are printed */
	bool formulas_kept_out; /* CSV only: no text begins like a formula of a spreadsheet */
};

/* What is written, and by that the options that go with it: cli/option_check.c allows and refuses
 * them by kind. All go with -d, -p and other choices of threads, and with --replay. */
enum renderer_kind {
	RENDERER_REPORT, /* text for people; what is written without an option for a format */
	/* samples, groups or single events, for programs: --trace, --report, --patience,
	 * --stack-dict, --goroutines, --tasks */
	RENDERER_ROWS,
	RENDERER_STACKS, /* stacks, or wait chains, with their times: --off-wake, --critical-path */
	RENDERER_COUNTERS, /* counters that grow: none of these */
};

struct renderer {
	const char *name; /* name of the option that selects it */
	enum renderer_kind kind;
	bool grouped;	 /* takes groups at an interval's end; false: samples, scan by scan */
	bool accounts;	 /* uses accounts, too: see sample/source.h */
	bool has_footer; /* reports by itself what was missed */
	/* Renderers for the rows of groups (--report) and for findings (--findings) beside this one
	 * for rows of samples; NULL: none. */
	const struct renderer *of_groups, *of_findings;
	/* Word for an output that one interval completes, so that the next one replaces it:
	 * "profile"; NULL: intervals may follow each other. */
	const char *whole;
	bool at_end;	    /* the only interval is that of the whole run */
	bool chains;	    /* can write wait chains in place of stacks (--by-chain) */
	bool compares;	    /* can write the difference of two files (--diff) */
	bool has_formulas;  /* programs may take texts for formulas (--csv-safe) */
	bool lists;	    /* lists, as of columns, are written so, too */
	size_t state_bytes; /* of what it keeps from interval to interval */
	/* Names of columns, as column_list_add() takes them: those that are always first; the
	 * default of the others; those that are always last; NULL: none. */
	const char *before, *columns, *behind;
	/* Writes what precedes the first interval; NULL: nothing. */
	void (*begin)(struct text *out, const struct column_list *list);
	void (*add)(struct text *out, const struct interval *interval);
	void (*done)(void *state); /* NULL: nothing is to be freed in it */
};

extern const struct renderer renderer_report, renderer_csv, renderer_json, renderer_csv_grouped,
	renderer_json_grouped, renderer_json_findings, renderer_finding, renderer_folded,
	renderer_flame, renderer_pprof, renderer_metrics, renderer_html;

/* page.css and page.js, embedded. */
extern const char page_style[], page_script[];

/* Parts of reports, beside groups_part (report/groups.h). */
extern const struct report_part path_part, distributions_part, events_part, stacks_part,
	chains_part, findings_part, sleepers_part, rows_part, page_part;

/* Adds a text for something missed: "12 late scans". */
void missed_add(struct text *out, const struct source_missed *missed);

/* Adds that the clock was set, without the end of the sentence. step_us and stepped_us: see struct
 * tally. recorded: of a recording, where a host that was suspended looks the same. */
void clock_step_add(struct text *out, int64_t step_us, int64_t stepped_us, bool recorded);

/* Adds the columns that are absent on this host: "syscall: why". */
void absent_add(struct text *out, const struct column_list *list,
		const struct source_absent *absent);

/* Adds the names of columns that a recording lacks, and how it gets them: "why, cgroup (record them
 * with -G why,cgroup)". option: the words after -G; NULL: those names. */
void unrecorded_add(struct text *out, const struct column_list *unrecorded, const char *option);

#define ABSENT_TEXT "-" /* text for an absent value in reports */
/* Less than one thread in that many is not much time. */
#define QUIET_THREADS 4

/* Parts of reports. Adds a line, broken at spaces if it is wider than interval->width. */
void interval_add_wrapped(struct text *out, const struct interval *interval, const char *line);
/* The same, and frees the line. */
void interval_add_line(struct text *out, const struct interval *interval, struct text *line);
/* Adds host and times; scans and rate; columns that the host lacks; and what was missed, if
 * anything. */
void interval_add_origin(struct text *out, const struct interval *interval);
void interval_add_scans(struct text *out, const struct interval *interval);
void interval_add_absent(struct text *out, const struct interval *interval);
void interval_add_missed(struct text *out, const struct interval *interval);
/* Adds begin and end in local time, and its zone; day: also the date. */
void interval_add_times(struct text *out, const struct interval *interval, bool day, int decimals);
/* Adds the titles and the first rows of the interval's grid, and names the last columns if the line
 * is too narrow for them. */
void interval_add_table(struct text *out, const struct interval *interval, size_t rows);
/* Replaces the cell's text by a value as tables have it, without a bar. */
void interval_add_cell(struct text *cell, const struct column *column, union value value);
/* Adds what is there if there are no rows. */
void interval_add_instead(struct text *out, const struct interval *interval);
/* Adds what changes the meaning of a report, remarks, and what tsnap cost, a line each. */
void interval_add_notes(struct text *out, const struct interval *interval);
/* Adds a line for each group, with time from left to right. */
void interval_add_heatmap(struct text *out, const struct interval *interval);
/* Adds the stacks (--stacks) of a row of the grid. */
/* Adds a count, and a stack as the column `stack` has it (NULL: none). */
void interval_add_counted_stack(struct text *out, const struct interval *interval, int64_t count,
				const char *stack);
void interval_add_stacks(struct text *out, const struct interval *interval, size_t row);
/* The events of events_part; NULL: it is not in use. */
struct event_list *events_list(const struct report *report);
struct event;
/* Adds an event of a recording, if it is of a kind that is wanted. */
void events_add(struct report *report, const struct event *event);
/* Columns of the distributions as rows; NULL: they are not wanted. */
const struct column_list *distributions_list(const struct report *report);
struct distribution_table *distributions_of(const struct report *report); /* NULL: none */
/* Adds sums of the sleeps among events by stack. */
void interval_add_sleep_sums(struct text *out, const struct interval *interval,
			     const struct event_list *events);
/* Adds the lines of --findings: host, times and how busy; then the findings, and what is none. */
void interval_add_findings_header(struct text *out, const struct interval *interval,
				  const struct findings *findings);
/* Adds what waits at a port: "37 requests wait unread at tcp :8080 of nginx 1234, the oldest for
 * 1.2 s or longer". */
void text_add_unread(struct text *to, const struct source_unread *unread);
/* Adds the sentence of a finding, as long as that many columns allow; 0: all of it. */
void interval_add_finding(struct text *out, const struct interval *interval,
			  const struct findings *findings, const struct finding *finding,
			  size_t columns);
/* Adds "; " and what the kernel counted of the device that it is about, if it is about one. */
void interval_add_device(struct text *out, const struct interval *interval,
			 const struct findings *findings, const struct finding *finding);
/* Adds its line of evidence: how sure, its share, its chain, and the command that shows more; and
 * of its device, where there is space. */
void interval_add_evidence(struct text *out, const struct interval *interval,
			   const struct findings *findings, const struct finding *finding);
/* The same as two texts: the command may stay empty. */
void interval_add_grounds(struct text *grounds, struct text *command,
			  const struct interval *interval, const struct findings *findings,
			  const struct finding *finding);
/* Adds what the recording lacks for findings, and what is none. */
void interval_add_findings_rest(struct text *out, const struct interval *interval,
				const struct findings *findings);
/* above: number of lines above, which leave less space in a window. */
void interval_add_findings(struct text *out, const struct interval *interval,
			   const struct findings *findings, size_t above);
/* As functions of parts (report/report.h): distributions, for each kind of trace a table and bars;
 * single events, longest first; what is in place of rows without samples.
 */
void interval_add_distributions(struct text *out, const struct interval *interval, void *table);
void interval_add_events(struct text *out, const struct interval *interval, void *events);
void interval_add_sleepers(struct text *out, const struct interval *interval, void *sleepers);
/* Adds the costs of tsnap itself; if interval->status->self was requested. */
void interval_add_self(struct text *out, const struct interval *interval);

#endif
