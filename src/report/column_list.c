/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/column_list.h"
#include "report/measure.h"
#include "sample/needs_table.h"
#include "sample/proc_values.h"
#include "sample/wait_rule.h"

#include <errno.h>
#include <string.h>

const struct column_set column_sets[] = {
	{"thread", "pid,tid,comm"},
	{"process", "pid,exe"},
	{"waker", "waker_pid,waker_tid,waker_comm"},
	{"times", "cpu_s,runq_s,dwait_s,sleep_s,csw_per_s,runq_avg_us"},
	{"chains",
	 "state,state_us,comm,syscall,arg0,filename,waits_on,blocker_tid,blocker_pid,"
	 "blocker_kind,blocker_sure,oncpu_comm,chain,depth,root,root_tid,root_pid,root_state,"
	 "root_syscall,root_why,root_waits_on"},
	{"findings",
	 "state,state_us,tid,pid,comm,commsum,kthread,syscall,arg0,filename,why,waits_on,"
	 "waits_onsum,io_dev,io_us,io_others,blocker_tid,blocker_pid,blocker_kind,blocker_sure,"
	 "oncpu_comm,chain,depth,root,root_tid,root_pid,root_state,root_syscall,root_why,"
	 "root_waits_on"},
	{"psn", REPORT_COLUMNS_DEFAULT},
	{"programs", PROGRAM_COLUMNS},
	{"churn", "forks,execs,exits,dead_cpu_s,new_threads"},
	{"cache", "file_bytes,cached_bytes,dirty_bytes,evicted_bytes,refault_bps"},
	{"interrupts", "hardirq_s,softirq_s,steal_s"},
};
const size_t column_set_count = sizeof(column_sets) / sizeof(column_sets[0]);

/* All columns: those of samples, then those of groups; NULL after the last. */
static const struct column *column_at(size_t at)
{
	if (at < sample_column_count)
		return &sample_columns[at];
	at -= sample_column_count;
	return at < measure_column_count ? &measure_columns[at] : NULL;
}

static const char *column_name_at(void *from, size_t at)
{
	const struct column *column;

	(void)from;
	if (at < column_set_count)
		return column_sets[at].name;
	column = column_at(at - column_set_count);
	return column ? column->name : NULL;
}

static const struct column *column_find(const char *name)
{
	const struct column *column;

	for (size_t at = 0; (column = column_at(at)); at++)
		if (column_is_called(column, name))
			return column;
	return NULL;
}

static int column_unknown(const char *name, struct error *e)
{
	const char *nearest = text_nearest(name, column_name_at, NULL);

	if (!*name)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "a column name is empty; tsnap --list prints all columns");
	if (nearest)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "unknown column \"%s\"; nearest: %s (tsnap --list prints all)",
				 name, nearest);
	return error_set(e, EINVAL, EXIT_USAGE,
			 "unknown column \"%s\"; tsnap --list prints all columns", name);
}

bool column_list_has(const struct column_list *list, const struct column *column)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == column)
			return true;
	return false;
}

static int column_add(struct column_list *list, const char *name, bool grouped, struct error *e)
{
	const struct column *column = column_find(name);

	for (size_t i = 0; i < column_set_count; i++)
		if (!strcmp(column_sets[i].name, name))
			return column_list_add(list, column_sets[i].columns, grouped, e);

	if (!column)
		return column_unknown(name, e);
	if (column->role == ROLE_MEASURE && !grouped)
		return error_set(
			e, EINVAL, EXIT_USAGE,
			"%s is a value of a report's groups: rows of samples don't have it", name);
	/* a list has each column once, and there are fewer than it holds */
	if (!column_list_has(list, column))
		list->items[list->count++] = column;
	list->wide |= column_is_proc_value(column);
	return 0;
}

int column_list_add(struct column_list *list, const char *names, bool grouped, struct error *e)
{
	struct column_list longer = *list;
	struct text name = {0};
	int err = 0;

	while (!err && text_next_name(&name, &names))
		err = column_add(&longer, text_string(&name), grouped, e);
	text_done(&name);
	if (!err)
		*list = longer;
	return err;
}

int column_list_add_keys(struct column_list *list, const char *names, struct error *e)
{
	struct column_list keys = {.count = 0};
	int err = column_list_add(&keys, names, true, e);

	for (size_t i = 0; !err && i < keys.count; i++)
		if (keys.items[i]->role != ROLE_KEY)
			err = error_set(
				e, EINVAL, EXIT_USAGE,
				"--by groups by keys, and %s is a value: -G adds it to a report",
				keys.items[i]->name);
	return err ? err : column_list_add(list, names, true, e);
}

uint64_t column_list_needs(const struct column_list *list)
{
	uint64_t needs = 0;

	for (size_t i = 0; i < list->count; i++)
		needs |= list->items[i]->needs;
	return sample_needs_close(needs);
}

void column_list_name(const struct column_list *list, uint64_t needs, struct text *names)
{
	size_t start = names->length;

	for (size_t i = 0; i < list->count; i++)
		if (sample_needs_close(list->items[i]->needs) & needs)
			text_add_format(names, "%s%s", names->length > start ? ", " : "",
					list->items[i]->name);
}

/* Adds the needs of a column, without those that they imply, and the most expensive of all. */
static void column_add_cost(struct text *text, const struct column *column)
{
	uint64_t all = sample_needs_close(column->needs);
	enum needs_cost cost = COST_FREE;

	for (size_t i = 0; i < needs_row_count; i++)
		if (all & needs_rows[i].need && needs_rows[i].cost > cost)
			cost = needs_rows[i].cost;
	text_add_format(text, "%-12s  %-11s ", needs_cost_names[cost],
			needs_dearest(column->needs)->name);
}

void column_add_help(struct text *text, const struct column *column)
{
	static const char *const roles[] = {
		[ROLE_KEY] = "",
		[ROLE_SUM] = "; in a report, the sum",
		[ROLE_MAX] = "; in a report, the largest",
		[ROLE_MEASURE] = "",
	};

	text_add_format(text, "%s%s", column->help, roles[column->role]);
}

void column_add_default(struct text *text, const struct column *column)
{
	static const char report[] = PROGRAM_COLUMNS, rows[] = ROW_COLUMNS_DEFAULT;

	text_add_char(text, text_lists(report, sizeof(report) - 1, column->name) ? 'r' : '-');
	text_add_char(text, text_lists(rows, sizeof(rows) - 1, column->name) ? 'c' : '-');
}

static void column_describe(struct text *text, const struct column *column)
{
	text_add_format(text, "  %-21s ", column->name);
	column_add_default(text, column);
	text_add_string(text, "  ");
	if (column->role != ROLE_MEASURE)
		column_add_cost(text, column);
	column_add_help(text, column);
	text_add_char(text, '\n');
}

static void needs_describe(struct text *text)
{
	text_add_string(text, "\nNeeds of columns, and their costs:\n");
	for (size_t i = 0; i < needs_row_count; i++)
		text_add_format(text, "  %-21s     %-12s  %s\n", needs_rows[i].name,
				needs_cost_names[needs_rows[i].cost], needs_rows[i].help);
}

static void classes_describe(struct text *text)
{
	text_add_string(
		text,
		"\nWhy a thread in S counts as work (shown without -a) or as idle: it waits\n");
	for (size_t i = 0; i < wait_rule_count; i++) {
		if (wait_rule_find(wait_rules[i].name) != &wait_rules[i])
			continue;
		text_add_format(text, "  %-21s     %-6s        %s\n", wait_rules[i].name,
				wait_rules[i].traits & WAIT_WORKS ? "work" : "idle",
				wait_rules[i].help);
	}
}

void columns_describe(struct text *text)
{
	const struct column *column;
	size_t section = 0;

	text_add_string(text,
			"Columns for -g, -G and --filter (r: in a report by default; c: in "
			"--csv and --json by default),\nwhat they cost and what they need:\n");
	for (size_t at = 0; (column = column_at(at)); at++) {
		if (section < column_section_count &&
		    !strcmp(column_sections[section].first, column->name))
			text_add_format(text, "\n%s:\n", column_sections[section++].name);
		if (at == sample_column_count)
			text_add_string(text, "\nMeasures of a group, in reports only:\n");
		column_describe(text, column);
	}
	text_add_string(text, "\nSeveral at once:\n");
	for (size_t i = 0; i < column_set_count; i++)
		text_add_format(text, "  %-21s     %s\n", column_sets[i].name,
				column_sets[i].columns);
	needs_describe(text);
	text_add_string(text, "\nStates:\n");
	for (int64_t i = 0; i < STATE_COUNT; i++)
		text_add_format(text, "  %-21s     %s%s\n", state_row(i)->name, state_row(i)->help,
				state_row(i)->active ? ""
				: i == STATE_SLEEP   ? " (shown with -a, or where it is work)"
						     : " (shown with -a)");
	classes_describe(text);
}

int query_filter(const struct query *query, struct filter *filter, struct error *e)
{
	int err = 0;

	filter->all_states = query->all_states;
	filter->on_cpu = query->on_cpu;
	filter->off_cpu = query->off_cpu;
	if (query->comm)
		filter_set_pattern(filter, "comm", query->comm);
	if (query->cgroup)
		filter_set_pattern(filter, "cgroup", query->cgroup);
	if (query->process)
		err = filter_set_process(filter, query->process, e);
	if (!err && query->threads)
		err = filter_set_threads(filter, query->threads, e);
	if (!err && query->user)
		err = filter_set_user(filter, query->user, query->recorded, e);
	if (!err && query->filter)
		err = filter_set_expression(filter, query->filter, e);
	return err;
}

bool query_selects(const struct query *query)
{
	return query->process || query->threads || query->user || query->comm || query->cgroup ||
	       query->filter;
}

int query_columns(const struct query *query, const char *otherwise, bool grouped,
		  struct column_list *list, struct error *e)
{
	if (query->by)
		return column_list_add_keys(list, query->by, e);
	return column_list_add(list, query->columns ? query->columns : otherwise, grouped, e);
}
