/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events that --trace reported, each as a row: those of one interval, in bounded memory. */
#ifndef TSNAP_REPORT_EVENT_LIST_H
#define TSNAP_REPORT_EVENT_LIST_H

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

/* A zeroed list is empty and has no columns: no events were requested. */
struct event_list {
	struct column_list list;  /* all columns of a row */
	struct column_list shown; /* columns of the last grid for people */
	struct event *items;
	size_t count, capacity;
	int64_t refused;   /* events that did not fit since the list was cleared */
	int64_t slower_ms; /* least duration of the events; 0: any */
};

/* keys, more (or NULL): names of columns; only keys of samples are taken. 0, or -EINVAL with a
 * usage error. */
int event_list_init(struct event_list *events, const char *keys, const char *more, struct error *e);
/* Needs of the columns, NEED_*. */
uint64_t event_list_needs(const struct event_list *events);
void event_list_add(struct event_list *events, const struct trace_kind *kind,
		    const struct sample *who, int64_t duration_ns);
/* Fills a grid for people: longest first, without columns that all rows lack. */
void event_grid_fill(struct event_list *events, struct grid *grid);
/* Fills a grid for programs: in order of arrival, always with all columns. */
void event_rows_fill(const struct event_list *events, struct grid *grid);
void event_list_clear(struct event_list *events);
void event_list_done(struct event_list *events);

#endif
