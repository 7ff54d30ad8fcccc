/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns chosen with -g and -G, in order; and the output of --list. */
#ifndef TSNAP_REPORT_COLUMN_LIST_H
#define TSNAP_REPORT_COLUMN_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "sample/column.h"
#include "sample/filter/filter.h"

#define COLUMN_LIST_MAX 256
/* Columns of the set `programs`, which a report has unless others are chosen; and those that it has
 * where options choose something else than columns. */
#define PROGRAM_COLUMNS                                                                        \
	"threads,on_thr,rq_thr,d_thr,s_thr,longest_ns,program,waits_for,mostly_in,main_chain," \
	"main_file"
#define REPORT_MEASURES_DEFAULT "avg_thr,seconds,share"
#define REPORT_COLUMNS_DEFAULT "state,user,commsum,syscall"
#define ROW_COLUMNS_DEFAULT                                                                        \
	"timestamp,weight_us,tid,pid,state,user,comm,exe,syscall,filename,state_us,cpu,waker_tid," \
	"cgroup,cpu_us,runq_us,dwait_us,sleep_us"

struct column_list {
	const struct column *items[COLUMN_LIST_MAX];
	size_t count;
	bool wide; /* some columns are in the proc_values of a sample */
};

/* Several columns under one name, wherever columns are named. */
struct column_set {
	const char *name;
	const char *columns; /* comma-separated names */
};

extern const struct column_set column_sets[];
extern const size_t column_set_count;

/* Appends the columns and sets in names (comma-separated), except those already there. grouped:
 * measures are allowed. 0, or -EINVAL with a usage error that suggests the nearest name.
 */
int column_list_add(struct column_list *list, const char *names, bool grouped, struct error *e);
/* Adds columns that are keys, for --by. */
int column_list_add_keys(struct column_list *list, const char *names, struct error *e);

bool column_list_has(const struct column_list *list, const struct column *column);
/* Needs of the columns, NEED_*, with all that these imply. */
uint64_t column_list_needs(const struct column_list *list);

/* Adds the comma-separated names of the columns that have one of these needs. */
void column_list_name(const struct column_list *list, uint64_t needs, struct text *names);

/* Adds the column's help, and what a report shows of a group. */
void column_add_help(struct text *text, const struct column *column);
/* Adds the column's default: "r" shown in a report, "c" shown in rows, "-" only if requested. */
void column_add_default(struct text *text, const struct column *column);

/* Text of --list. */
void columns_describe(struct text *text);

/* A query: which threads are wanted, and by which columns they are grouped. The command line and
 * the keys of the full screen write the same struct, so that there is one way to group and filter.
 */

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
