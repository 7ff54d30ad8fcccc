/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text format of Prometheus (version 0.0.4), for node_exporter's textfile collector: counters
 * since the start of the run, and threads on average over the latest interval.
 * https://prometheus.io/docs/instrumenting/exposition_formats
 */
#include "render/fold.h"
#include "render/renderer.h"
#include "report/metric_totals.h"
#include "report/value.h"

#define KEYS_DEFAULT "state,commsum,syscall"
#define US_DECIMALS 6
#define NS_DECIMALS 9
#define OTHERS "[others]"

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
