/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/query.h"

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
