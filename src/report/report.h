/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report and its parts. A part takes samples, keeps what it makes of them until an interval ends,
 * and shows that: groups, their stacks, distributions, chains, findings, rows that are written at
 * once, a recording. It owns all that it accumulates. cli/run.c hands each scan to the parts that
 * options want; cli/part_table.c lists them.
 *
 * A new part is a file with a struct report_part at its end, and a row of that table.
 */
#ifndef TSNAP_REPORT_REPORT_H
#define TSNAP_REPORT_REPORT_H

#include "base/error.h"
#include "base/text.h"
#include "report/exact_times.h"
#include "report/finding_condition.h"
#include "report/grid.h"
#include "report/column_list.h"
#include "report/tally.h"
#include "sample/source.h"
#include "sample/trace_kind.h"

#define REPORT_PARTS_MAX 24
#define REPORT_MISSED_MAX 16

struct config;
struct interval;
struct renderer;
struct report;
struct time_rows;

/* Options that parts read; a part of struct config (cli/config.h). */
struct report_config {
	int64_t stacks; /* --stacks: stacks of each line of a report; 0: none */
	bool chains;	/* --chains */
	bool findings;	/* --findings */
	/* --when of findings: other intervals are not shown */
	struct finding_condition condition;
	bool off_wake;		   /* --off-wake */
	const char *critical_path; /* --critical-path as typed: ids or name patterns; NULL: none */
	int64_t by_time_us;	   /* --by-time; 0: not given */
	int64_t findings_step_us;  /* the same with --findings, which keep it for themselves */
	bool heatmap;		   /* --heatmap */
	int64_t patience_us;	   /* --patience */
	bool all_rows;		   /* --all-rows */
	bool raw;		   /* --raw */
	bool csv_safe;		   /* --csv-safe */
	bool verbose;		   /* -v */
};

/* Functions may be NULL: the part has nothing to do there. state: its own, of `bytes` bytes. */
struct report_part {
	size_t bytes;
	/* Before the source is open. 1: it is in use; 0: options do not want it; or -errno with
	 * report->e. */
	int (*begin)(void *state, struct report *report);
	uint64_t (*needs)(const void *state); /* NEED_* of samples */
	/* The source is open. 0 or -errno with report->e. */
	int (*open)(void *state, struct report *report);
	/* Takes a batch of a scan. True: the parts after it get other samples for these, which it
	 * adds with report_add(). */
	bool (*take)(void *state, struct report *report, const struct scan *batch);
	/* Takes a sample that report_add() adds; note: see report/group_split.h. */
	void (*add)(void *state, const struct sample *sample, struct exact_note note);
	void (*add_account)(void *state, const struct sample *account);
	/* Takes what the source has beside samples: after a scan (report->scan), and all: before an
	 * interval ends, or the run. 0 or -errno with report->e. */
	int (*collect)(void *state, struct report *report, bool all);
	/* Ends an interval: what was added becomes what is shown. Exact times are shared out. */
	void (*end)(void *state, struct report *report);
	/* True if it holds texts of samples for later. */
	bool (*holds)(const void *state);
	/* Parts of a report for people: a line of its head; what is there in place of rows, if
	 * there are none; tables below the rows; lines of its footer. */
	void (*head)(struct text *line, const struct interval *interval, void *state);
	void (*instead)(struct text *out, const struct interval *interval, void *state);
	void (*below)(struct text *out, const struct interval *interval, void *state);
	void (*footer)(struct text *out, const struct interval *interval, void *state);
	/* Objects beside those of findings, in JSON; end: what ends each of them. */
	void (*objects)(struct text *out, const char *end, void *state);
	void (*clear)(void *state);   /* the interval was shown */
	void (*release)(void *state); /* drops what has texts of samples: the source is crowded */
	/* Shows or writes what it has, before a call of the main thread that does not end. */
	void (*save)(void *state, struct report *report);
	void (*done)(void *state);
};

/* A part that is in use. */
struct report_use {
	const struct report_part *part;
	void *state;
};

struct report_missed {
	const char *what;
	uint64_t count, ever; /* in the interval; since the start */
};

/* What the parts share. */
struct report {
	const struct config *options; /* all, for parts in cli */
	const struct report_config *config;
	struct query query; /* threads and columns as typed */
	const struct renderer *renderer;
	void (*tell)(const char *lines); /* writes to standard error */
	const char *record;		 /* directory of a recording (-o); NULL: none is written */
	bool grouped;			 /* output is made for an interval, not for a scan */
	bool rows_of_groups;	    /* and it has rows of groups; else of distributions alone */
	bool for_people;	    /* it has head, footer, and words where there are no rows */
	bool of_stacks;		    /* it is made of stacks */
	bool events, distributions; /* what --trace and --slower report */
	const struct trace_kind *kinds[TRACE_KINDS_MAX]; /* of --trace */
	size_t kind_count;
	bool events_unasked; /* a recorder has its kinds without being asked: samples get nothing
			      * more for them */
	int64_t slower_us;
	struct column_list list; /* columns of rows */
	struct filter filter;
	/* Opens the source, as for this report (cli/run.h); for a part that replays again. */
	int (*open_source)(const struct config *config, struct filter *filter, uint64_t needs,
			   struct source **source, struct error *e);
	struct source *source; /* NULL: not open yet */
	struct exact_times times;
	struct tally tally;	       /* totals since the last interval */
	struct grid grid;	       /* rows of an interval, or of a batch */
	const struct grid *rows;       /* rows that are shown */
	const struct time_rows *steps; /* steps of --heatmap in their place; NULL: not wanted */
	const struct column *sort;     /* --sort; NULL: most time first */
	struct interval *interval;
	struct text out;
	const struct scan *scan;	    /* the present one */
	bool in_scan;			    /* batches of it were taken */
	bool unwanted;			    /* the interval that ends is not shown */
	bool moment;			    /* scans around the present one are recorded: --when */
	int64_t total_us;		    /* time in the whole run */
	int64_t gap_scans;		    /* scans that are missing before it */
	const struct source_status *status; /* of an interval that ends */
	struct report_missed missed[REPORT_MISSED_MAX];
	size_t missed_count;
	struct error *e;
	struct report_use uses[REPORT_PARTS_MAX];
	size_t use_count;
};

/* Each part in use that has the function; report may be NULL. */
#define REPORT_EACH(use, report, function)                                    \
	for (const struct report_use *use = (report) ? (report)->uses : NULL; \
	     use && use < (report)->uses + (report)->use_count; use++)        \
		if (use->part->function)

/* Begins the wanted ones of the parts, which end with NULL, in that order. 0 or -errno. */
int report_begin(struct report *report, const struct report_part *const *parts);
/* The part's state; NULL: it is not in use. */
void *report_state(const struct report *report, const struct report_part *part);
/* Each calls a function of all parts. */
uint64_t report_needs(const struct report *report);
int report_open(struct report *report);
void report_take(struct report *report, const struct scan *batch);
void report_add(struct report *report, const struct sample *sample, struct exact_note note);
void report_add_account(void *report, const struct sample *account);
int report_collect(struct report *report, bool all);
void report_end(struct report *report);
void report_clear(struct report *report);
void report_release(struct report *report);
bool report_holds(const struct report *report);
void report_save(struct report *report);
void report_done(struct report *report);

/* Counts what was missed, by the words for it; adds all of it to a status. ever: since the start.
 */
void report_miss(struct report *report, const char *what, int64_t count);
void report_add_missed(const struct report *report, bool ever, struct source_status *status);

/* Adds the columns of `of` that no sample has, as the recording does not hold them. */
void report_lacks(const struct report *report, const struct column_list *of,
		  struct column_list *lacking);

#endif
