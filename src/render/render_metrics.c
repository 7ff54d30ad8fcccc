/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text format of Prometheus (version 0.0.4), for node_exporter's textfile collector: counters
 * since the start of the run, and threads on average over the latest interval.
 * https://prometheus.io/docs/instrumenting/exposition_formats
 */
#include "base/index.h"
#include "base/memory.h"
#include "render/fold.h"
#include "render/renderer.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define KEYS_DEFAULT "state,commsum,syscall"
#define US_DECIMALS 6
#define NS_DECIMALS 9
#define OTHERS "[others]"

/* Counters of --metrics, from the start of the run on: time by group, and what was missed. A group
 * is identified by the text of its labels, which outlives the interned strings of its values.
 *
 * Bounded: the first METRIC_GROUPS_MAX groups, of each interval those with the most time first;
 * time of all others goes to one group.
 */
#define METRIC_GROUPS_MAX 500

struct metric_group {
	char *labels;	   /* labels as they are written: state="ON",comm="x" */
	uint64_t hash;	   /* hash of the labels */
	int64_t us;	   /* time since the start */
	int64_t latest_us; /* time in the latest interval */
};

struct metric_missed {
	const char *what; /* name of what was missed; static */
	uint64_t count;
};

/* A zeroed struct is empty. */
struct metric_totals {
	struct metric_group groups[METRIC_GROUPS_MAX];
	size_t count;
	int64_t others_us, others_latest_us; /* time of groups that did not fit */
	struct metric_missed missed[SOURCE_MISSED_MAX];
	size_t missed_count;
	int64_t scans, own_cpu_ns, bpf_ns;
};

/* Begins an interval. */
static void metric_totals_begin(struct metric_totals *totals)
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
	*group = (struct metric_group){.labels = memory_text(labels, strlen(labels)), .hash = hash};
	return group;
}

/* Adds time to the group with these labels. */
static void metric_totals_add(struct metric_totals *totals, const char *labels, int64_t us)
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

/* Adds the interval's scans, and what the source reports of it. */
static void metric_totals_end(struct metric_totals *totals, int64_t scans,
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

static void metric_totals_done(void *state)
{
	struct metric_totals *totals = state;

	for (size_t i = 0; i < totals->count; i++)
		free(totals->groups[i].labels);
	*totals = (struct metric_totals){0};
}

/* Adds a label. Characters that would end the quoted text are escaped; the text is printable and of
 * one line already. */
static void label_add(struct text *labels, const char *name, const char *value)
{
	text_add_format(labels, "%s%s=\"", labels->length ? "," : "", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			text_add_char(labels, '\\');
		text_add_char(labels, *value);
	}
	text_add_char(labels, '"');
}

static void groups_take(struct metric_totals *totals, const struct interval *interval)
{
	struct text labels = {0}, value = {0};

	for (size_t row = 0; row < interval->grid->row_count; row++) {
		text_clear(&labels);
		for (size_t i = 0; i < interval->root_count; i++) {
			const struct column *column = interval->grid->list->items[i];

			text_clear(&value);
			value_add(&value, column, grid_row(interval->grid, row)[i]);
			label_add(&labels, column->name, text_string(&value));
		}
		metric_totals_add(totals, text_string(&labels),
				  fold_weight_us(interval, row, NULL));
	}
	text_done(&labels);
	text_done(&value);
}

/* Adds number / 10^decimals; number is not below 0. */
static void number_add(struct text *out, int64_t number, int decimals)
{
	int64_t one = 1;

	for (int i = 0; i < decimals; i++)
		one *= 10;
	text_add_number(out, number / one);
	if (decimals)
		text_add_format(out, ".%0*lld", decimals, (long long)(number % one));
	text_add_char(out, '\n');
}

static void metric_begin(struct text *out, const char *name, const char *kind, const char *help)
{
	text_add_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

/* Adds a metric without labels. */
static void metric_add(struct text *out, const char *name, const char *kind, const char *help,
		       int64_t number, int decimals)
{
	metric_begin(out, name, kind, help);
	text_add_format(out, "%s ", name);
	number_add(out, number, decimals);
}

static void series_add(struct text *out, const char *name, const char *labels, int64_t number,
		       int decimals)
{
	text_add_format(out, "%s{", name);
	text_add_string(out, labels);
	text_add_string(out, "} ");
	number_add(out, number, decimals);
}

/* Makes the labels of groups that did not fit: each is the same word. */
static void others_label(struct text *labels, const struct interval *interval)
{
	for (size_t i = 0; i < interval->root_count; i++)
		label_add(labels, interval->grid->list->items[i]->name, OTHERS);
}

static void groups_add(struct text *out, const struct metric_totals *totals,
		       const struct interval *interval)
{
	static const char threads[] = "tsnap_threads", seconds[] = "tsnap_thread_seconds_total";
	int64_t elapsed_us = interval->tally->elapsed_us;
	struct text others = {0};

	others_label(&others, interval);
	metric_begin(out, threads, "gauge", "Threads on average over the latest interval.");
	for (size_t i = 0; i < totals->count; i++)
		series_add(out, threads, totals->groups[i].labels,
			   ratio(totals->groups[i].latest_us, 1000, elapsed_us), 3);
	if (totals->others_us)
		series_add(out, threads, text_string(&others),
			   ratio(totals->others_latest_us, 1000, elapsed_us), 3);
	metric_begin(out, seconds, "counter", "Time of threads, exact times shared by samples.");
	for (size_t i = 0; i < totals->count; i++)
		series_add(out, seconds, totals->groups[i].labels, totals->groups[i].us,
			   US_DECIMALS);
	if (totals->others_us)
		series_add(out, seconds, text_string(&others), totals->others_us, US_DECIMALS);
	text_done(&others);
}

static void missed_write(struct text *out, const struct metric_totals *totals)
{
	static const char missed[] = "tsnap_missed_total";

	if (!totals->missed_count)
		return;
	metric_begin(out, missed, "counter", "What was missed, as the report's footer counts it.");
	for (size_t i = 0; i < totals->missed_count; i++) {
		struct text label = {0};

		label_add(&label, "what", totals->missed[i].what);
		series_add(out, missed, text_string(&label), (int64_t)totals->missed[i].count, 0);
		text_done(&label);
	}
}

static void metrics_add(struct text *out, const struct interval *interval)
{
	struct metric_totals *totals = interval->state;

	metric_totals_begin(totals);
	groups_take(totals, interval);
	metric_totals_end(totals, interval->tally->scans, interval->status);
	groups_add(out, totals, interval);
	metric_add(out, "tsnap_interval_seconds", "gauge", "Length of the latest interval.",
		   interval->tally->elapsed_us, US_DECIMALS);
	metric_add(out, "tsnap_until_timestamp_seconds", "gauge", "End of the latest interval.",
		   interval->tally->until_us, US_DECIMALS);
	metric_add(out, "tsnap_scans_total", "counter", "Scans of all threads.", totals->scans, 0);
	missed_write(out, totals);
	metric_add(out, "tsnap_own_cpu_seconds_total", "counter", "CPU time of tsnap.",
		   totals->own_cpu_ns, NS_DECIMALS);
	metric_add(out, "tsnap_bpf_seconds_total", "counter",
		   "CPU time of its BPF programs, where the kernel counts it.", totals->bpf_ns,
		   NS_DECIMALS);
}

const struct renderer renderer_metrics = {
	.name = "metrics",
	.kind = RENDERER_COUNTERS,
	.grouped = true,
	.columns = KEYS_DEFAULT,
	.behind = "weight_us",
	.state_bytes = sizeof(struct metric_totals),
	.add = metrics_add,
	.done = metric_totals_done,
};
