/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer to a question: the window's samples, filtered and grouped as in a report, and what is
 * shown around the table. Drawing and events read it. */
#ifndef TSNAP_SCREEN_SHOWN_H
#define TSNAP_SCREEN_SHOWN_H

#include "report/exact_times.h"
#include "report/grid.h"
#include "report/group.h"
#include "report/measure.h"
#include "report/tally.h"
#include "sample/source.h"
#include "screen/history.h"
#include "screen/host_log.h"
#include "screen/tree.h"
#include "screen/view.h"

#define BAND_STEPS_MAX 400
#define BAND_LABEL_WIDTH 8 /* width of the labels before the band */

/* Threads by state over the last minutes: sums of the scans of each step. */
struct band {
	int64_t from_us, step_us;
	size_t count;
	struct band_step {
		int64_t scans, threads[BAND_COUNT];
	} steps[BAND_STEPS_MAX];
};

/* Facts about the source beside its samples, and how the history was made. */
struct shown_source {
	struct source_status status; /* counts since the start */
	struct host_log *host_log;   /* of the source, not owned; NULL: nothing is kept */
	const char *recording;	     /* name of the recording that is replayed; NULL: live */
	int64_t own_cpu; /* tsnap's CPU time, hundredths of a percent of one CPU; ABSENT:
			  * not known */
	bool ended;	 /* no more samples come */
	char error[ERROR_LINE_SIZE + 32]; /* reason why no more samples come; "": no error */
	bool all_states;		  /* threads in every state are sampled */
	uint64_t needs;			  /* NEED_*: what is sampled */
	bool traces;			  /* durations are traced, too */
	const char *base; /* options of the command line that apply to the source itself */
};

#define PEEK_LINES_MAX 128
#define PEEK_TRACES_MAX 8
#define PEEK_TRACE_SUM (-1)

/* Samples of a row in each step of the band, and the number of scans in each step. */
struct peek_band {
	char filter[VIEW_INPUT_SIZE]; /* filter of the samples that are counted */
	bool all_states;
	int64_t step_us, from_us; /* same as in struct band; step_us 0: nothing was counted */
	struct history_seen seen; /* times whose samples are counted; older ones follow */
	int64_t samples[BAND_STEPS_MAX], scans[BAND_STEPS_MAX];
};

/* Parts of a row: the values of one column after the other, most samples first. */
struct peek {
	char filter[VIEW_INPUT_SIZE]; /* filter of the row's samples; "": nothing was filled */
	uint64_t answer;	      /* number of the answer that it was made from */
	size_t count;
	struct peek_line {
		const struct column *column;
		union value value;
		int64_t avg_thr, share; /* see struct measures */
	} lines[PEEK_LINES_MAX];
	struct measures exact; /* measures of all samples of the row */
	struct tally tally;
	/* durations that --trace measured of threads that the row's filter does not refuse */
	size_t trace_count;
	struct peek_trace {
		const struct trace_kind *kind;
		struct histogram histogram;
		int64_t most; /* greatest count of a bucket */
	} traces[PEEK_TRACES_MAX];
	size_t trace_line_count;
	struct peek_trace_line {
		size_t trace;
		int bucket; /* PEEK_TRACE_SUM: all buckets */
	} trace_lines[PEEK_TRACES_MAX * (HISTOGRAM_BUCKETS + 1)];
	struct tree stacks; /* tree of the samples' stacks; empty if none has one */
	struct peek_band band;
};

#define HEAT_ROWS_MAX 24

/* Samples by time and by how long their state had lasted, or by how many threads there were. */
struct heat {
	int64_t from_us, step_us;
	size_t columns, rows;
	int64_t cells[HEAT_ROWS_MAX][BAND_STEPS_MAX]; /* row 0: least values */
	int64_t most;				      /* greatest value of a cell */
	bool of_threads;
	/* answer, question and width that the map was made from */
	uint64_t answer;
	struct question question;
	size_t band_count;
	struct history_seen seen; /* times whose samples are in the cells */
};

/* Findings in a window, as texts. */
struct finding_lines {
	size_t count;
	struct finding_line {
		const char *name;	   /* of the finding */
		char *sentence, *evidence; /* fit into `columns` */
		char *columns, *filter;	   /* the view of its threads */
	} * items;
	size_t columns;
	int64_t until_us; /* of the question they answer */
	int64_t due_ns;	  /* time when they are found anew */
};

/* Answer to a question. A zeroed struct is an empty one. */
struct shown {
	struct column_list list; /* columns of the grid */
	struct group_table groups;
	struct exact_times times; /* the window's threads, with samples that the filter refuses */
	struct grid grid;
	size_t *order; /* rows of the grid as they are shown */
	size_t order_capacity;
	struct tally tally;
	struct tally marked; /* second window, which was subtracted; no scans: there is none */
	int64_t from_us, until_us; /* the window: from_us <= time < until_us */
	struct history_view history;
	struct shown_source source;
	struct band band;
	struct band_step states; /* the window's threads by state, whatever the filter is */
	bool grouped;		 /* the groups are those of list */
	uint64_t answer;	 /* number of the last shown_fill() */
	struct peek peek;
	struct tree tree;
	uint64_t tree_answer; /* number of the answer that tree was made from */
	bool tree_of_parents;
	struct heat heat;
	struct finding_lines findings;
};

/* Adds a scan of the window to its tally, and the silence before it, unless it is the first:
 * silence before the window is not counted in it. */
void tally_add_history_scan(struct tally *tally, const struct history_scan *scan);

/* Takes a snapshot of the history and answers the question. band_steps: number of steps of the
 * band. */
void shown_fill(struct shown *shown, struct history *history, const struct question *question,
		size_t band_steps);
/* Groups the history's samples of the question's window with the end until_us by shown->list, and
 * shares out the exact times of their threads; to be ended with group_table_done(). times: zeroed
 * or from an earlier call; must outlive the groups. */
void window_group(const struct shown *shown, const struct question *question, int64_t until_us,
		  struct group_table *groups, struct exact_times *times, struct tally *tally);
/* Finds what is wrong in the question's window, if that is due, for lines of that width
 * (finding_lines.c); call after shown_fill(). */
void finding_lines_fill(struct shown *shown, const struct question *question, size_t columns);
uint64_t finding_lines_needs(void); /* NEED_* */
void finding_lines_done(struct finding_lines *lines);
/* Fills the parts of a row, if that was not done yet (peek.c). */
void shown_peek(struct shown *shown, const struct view *view);

void shown_done(struct shown *shown);

/* Values of a row, by its position in the order that is shown. */
const union value *shown_row(const struct shown *shown, size_t row);
/* Number of scans that the scan stands for, with those before it that saw nothing. */
int64_t history_scans(const struct history_scan *scan);
/* Length of a step of the band or the heat map, if so many of them show all of the history. */
int64_t history_step_us(const struct history_view *history, size_t steps);
/* Adds the value as the table shows it; - if it is absent. */
void shown_add_value(struct text *text, const struct column *column, union value value);

#endif
