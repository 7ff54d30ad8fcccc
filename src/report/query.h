/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A query: which threads are wanted, and by which columns they are grouped. The command line and
 * the keys of the full screen write the same struct, so that there is one way to group and filter.
 */
#ifndef TSNAP_REPORT_QUERY_H
#define TSNAP_REPORT_QUERY_H

#include <stdbool.h>

#include "base/error.h"
#include "report/column_list.h"
#include "sample/filter/filter.h"

/* Zeroed: all active threads, default columns. Strings are as typed, NULL for an option that was
 * not given; they must outlive the filter and lists made of them. */
struct query {
	const char *columns;	  /* -g */
	const char *by;		  /* --by */
	const char *more_columns; /* -G */
	const char *process;	  /* -p */
	const char *threads;	  /* -t */
	const char *user;	  /* -u */
	const char *comm;	  /* -c */
	const char *cgroup;	  /* --cgroup */
	const char *filter;	  /* --filter */
	bool all_states;	  /* -a */
	bool on_cpu, off_cpu;	  /* --on-cpu, --off-cpu */
	bool recorded; /* samples come from a recording: a user may be unknown on this host */
};

/* Sets the query's conditions in the filter, which must be zeroed or have other flags only. 0, or
 * -EINVAL with a usage error. */
int query_filter(const struct query *query, struct filter *filter, struct error *e);

/* True if options select only some threads. */
bool query_selects(const struct query *query);

/* Appends the query's columns, or those named in otherwise, without the additional ones (-G).
 * grouped: measures are allowed. 0, or -EINVAL with a usage error. */
int query_columns(const struct query *query, const char *otherwise, bool grouped,
		  struct column_list *list, struct error *e);

#endif
