/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/metric_totals.h"
#include "base/index.h"
#include "base/memory.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

void metric_totals_begin(struct metric_totals *totals)
{
	for (size_t i = 0; i < totals->count; i++)
		totals->groups[i].latest_us = 0;
	totals->others_latest_us = 0;
}

/* Finds or adds a group; NULL: there is no capacity for another one. */
static struct metric_group *group_find(struct metric_totals *totals, const char *labels)
{
	uint64_t hash = hash_bytes(labels, strlen(labels));
	struct metric_group *group = totals->groups;

	for (size_t i = 0; i < totals->count; i++, group++)
		if (group->hash == hash && !strcmp(group->labels, labels))
			return group;
	if (totals->count == METRIC_GROUPS_MAX)
		return NULL;
	totals->count++;
	*group = (struct metric_group){.labels = memory_get(strlen(labels) + 1), .hash = hash};
	memcpy(group->labels, labels, strlen(labels) + 1);
	return group;
}

void metric_totals_add(struct metric_totals *totals, const char *labels, int64_t us)
{
	struct metric_group *group = group_find(totals, labels);
	int64_t *total = group ? &group->us : &totals->others_us;
	int64_t *latest = group ? &group->latest_us : &totals->others_latest_us;

	*total = sum(*total, us);
	*latest = sum(*latest, us);
}

static void missed_add_count(struct metric_totals *totals, const struct source_missed *missed)
{
	size_t i = 0;

	while (i < totals->missed_count && strcmp(totals->missed[i].what, missed->what) != 0)
		i++;
	if (i == SOURCE_MISSED_MAX)
		return;
	if (i == totals->missed_count)
		totals->missed[totals->missed_count++] = (struct metric_missed){missed->what, 0};
	totals->missed[i].count += missed->count;
}

void metric_totals_end(struct metric_totals *totals, int64_t scans,
		       const struct source_status *status)
{
	totals->scans += scans;
	/* a standing value, true only now, is no counter */
	for (size_t i = 0; i < status->missed_count; i++)
		if (!status->missed[i].standing)
			missed_add_count(totals, &status->missed[i]);
	if (status->own_cpu_ns != ABSENT)
		totals->own_cpu_ns = sum(totals->own_cpu_ns, status->own_cpu_ns);
	if (status->bpf_ns != ABSENT)
		totals->bpf_ns = sum(totals->bpf_ns, status->bpf_ns);
}

void metric_totals_done(void *state)
{
	struct metric_totals *totals = state;

	for (size_t i = 0; i < totals->count; i++)
		free(totals->groups[i].labels);
	*totals = (struct metric_totals){0};
}
