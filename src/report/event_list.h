/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events that --trace reported, each as a row: those of one interval, in bounded memory. */
#ifndef TSNAP_REPORT_EVENT_LIST_H
#define TSNAP_REPORT_EVENT_LIST_H

#include "base/index.h"
#include "report/column_list.h"
#include "report/grid.h"
#include "sample/trace_kind.h"

#define EVENTS_KEPT_MAX 65536
#define EVENT_COLUMNS_DEFAULT "tid,pid,user,comm"
#define EVENT_COLUMNS_SLOW "state,syscall,errno,fd,filename"

struct event {
	const char *trace;
	int64_t duration_ns;
	struct sample who; /* time_us: end of the event */
};

/* Columns of an event that no sample has, and its time: of a struct event. */
extern const struct column event_columns[];
extern const size_t event_column_count;

/* A zeroed list is empty and has no columns: no events were requested. */
struct event_list {
	struct column_list list;  /* all columns of a row */
	struct column_list shown; /* columns of the last grid for people */
	struct event *items;
	size_t count, capacity;
	int64_t refused;   /* events that did not fit since the list was cleared */
	int64_t slower_us; /* least duration of the events; 0: any */
};

/* keys, more (or NULL): names of columns; only keys of samples are taken. 0, or -EINVAL with a
 * usage error. */
int event_list_init(struct event_list *events, const char *keys, const char *more, struct error *e);
void event_list_add(struct event_list *events, const struct trace_kind *kind,
		    const struct sample *who, int64_t duration_ns);
/* Fills a grid for people: longest first, without columns that all rows lack. */
void event_grid_fill(struct event_list *events, struct grid *grid);
/* Fills a grid for programs: in order of arrival, always with all columns. */
void event_rows_fill(const struct event_list *events, struct grid *grid);
void event_list_clear(struct event_list *events);
void event_list_done(struct event_list *events);

/* Facts of single waits (--slower) from samples: stacks of sleeps (offcpu), and, in the same way,
 * why a thread did not get a CPU (runq). When a sleep ends its stack is gone, and reading it at the
 * start of each sleep would cost time at every switch. So the stack is taken from a scan's sample
 * within the sleep: a thread that a scan saw asleep between the start and the end of a sleep slept
 * all of that time. A sleep that no scan saw has no stack.
 *
 * Events of a scan's time come after its samples, so that only the last two sleeps of a thread are
 * needed. Memory is bounded: when it is full, all sleeps are dropped.
 */
#define SLEEP_STACKS_MAX 65536 /* limit of threads */

/* A zeroed struct is empty. */
struct sleep_stacks {
	struct keyed threads; /* two of struct sleep_stack, by tid, the last one first */
};

/* Notes a sample: its stacks, if its thread is asleep; the reason that it does not run, in RQ. */
void sleep_stacks_note(struct sleep_stacks *stacks, const struct sample *sample);
/* Fills an event of duration_ns that ended at who->time_us: the stacks of a sleep (which has a
 * state), or, for a wait for a CPU (runnable), the reason that the thread did not run. */
void sleep_stacks_fill(const struct sleep_stacks *stacks, struct sample *who, bool runnable,
		       int64_t duration_ns);
/* Forgets all sleeps; call before texts of samples are freed. */
void sleep_stacks_clear(struct sleep_stacks *stacks);
void sleep_stacks_done(struct sleep_stacks *stacks);

/* Sleeps with the same stack. */
struct sleep_sum {
	int64_t ustack, kstack; /* hashes; both ABSENT: no scan saw them */
	const char *stack;	/* stack of the last of the sleeps; NULL: none */
	int64_t count, duration_ns;
	int64_t ended_us; /* end of the last of them */
};

/* Sums of the sleeps among the events, the longest first, those without a stack last. The caller
 * frees them. */
struct sleep_sum *sleep_sums_make(const struct event_list *events, size_t *count);

#endif
