/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report for machines (--report with --csv or --json): a row for each group, with its interval.
 * In JSON an object precedes the rows; it has what the text form has in its header lines and
 * footer. */
#include "render/render_grouped.h"
#include "report/value.h"

static const char *const resource_names[RESOURCE_COUNT] = {
	[RESOURCE_CPU] = "cpu",
	[RESOURCE_MEMORY] = "memory",
	[RESOURCE_IO] = "io",
};

/* Adds the interval's times and scans. They come after the cells, in the text that ends each
 * row. */
static void add_interval(struct text *out, const struct tally *tally, const char *const words[4])
{
	char from[CLOCK_ISO_SIZE], until[CLOCK_ISO_SIZE];

	clock_format_iso(tally->from_us, from);
	clock_format_iso(tally->until_us, until);
	text_add_format(out, "%s%s%s%s%s%lld", words[0], from, words[1], until, words[2],
			(long long)tally->elapsed_us);
	text_add_format(out, "%s%lld", words[3], (long long)tally->scans);
}

void grouped_csv_begin(struct text *out, const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		text_add_format(out, "%s,", list->items[i]->name);
	text_add_string(out, "begin,end,elapsed_us,scans\n");
}

void grouped_csv_end(struct text *row_end, const struct interval *interval)
{
	static const char *const words[] = {",", ",", ",", ","};

	add_interval(row_end, interval->tally, words);
	text_add_char(row_end, '\n');
}

void grouped_json_end(struct text *row_end, const struct interval *interval)
{
	static const char *const words[] = {",\"begin\":\"", "\",\"end\":\"",
					    "\",\"elapsed_us\":", ",\"scans\":"};

	add_interval(row_end, interval->tally, words);
	text_add_string(row_end, "}\n");
}

void json_add_text(struct text *out, const char *before, const char *string)
{
	struct text scratch = {0};

	text_add_string(out, before);
	text_add_printable(&scratch, string);
	cell_add_escaped(out, text_string(&scratch), "\"\\", '\\');
	text_done(&scratch);
}

void json_add_number(struct text *out, const char *name, int64_t number)
{
	text_add_format(out, ",\"%s\":", name);
	if (number == ABSENT)
		text_add_string(out, "null");
	else
		text_add_number(out, number);
}

static void json_add_pressure(struct text *out, const char *name,
			      const struct source_pressure pressures[RESOURCE_COUNT])
{
	const char *before = "{";

	for (int i = 0; i < RESOURCE_COUNT; i++) {
		if (!pressures[i].known)
			continue;
		if (*before == '{')
			text_add_format(out, ",\"%s\":", name);
		text_add_format(out,
				"%s\"%s\":{\"some_us\":%lld,\"full_us\":%lld,"
				"\"elapsed_us\":%lld}",
				before, resource_names[i], (long long)pressures[i].some_us,
				(long long)pressures[i].full_us, (long long)pressures[i].read_us);
		before = ",";
	}
	if (*before == ',')
		text_add_char(out, '}');
}

static void json_add_quotas(struct text *out, const struct source_status *status)
{
	text_add_string(out, ",\"throttled\":[");
	for (size_t i = 0; i < status->quota_count; i++) {
		const struct source_quota *quota = &status->quotas[i];

		json_add_text(out, i ? ",{\"cgroup\":" : "{\"cgroup\":", quota->path);
		json_add_number(out, "throttled_us", quota->throttled_us);
		json_add_number(out, "throttled_periods", quota->throttled_periods);
		json_add_number(out, "periods", quota->periods);
		text_add_char(out, '}');
	}
	text_add_char(out, ']');
}

static void json_add_io_limits(struct text *out, const struct source_status *status)
{
	text_add_string(out, ",\"io_limits\":[");
	for (size_t i = 0; i < status->io_limit_count; i++) {
		const struct source_io_limit *limit = &status->io_limits[i];

		json_add_text(out, i ? ",{\"cgroup\":" : "{\"cgroup\":", limit->path);
		json_add_text(out, ",\"device\":", limit->device);
		json_add_text(out, ",\"limit\":", limit->word);
		json_add_number(out, "per_second", limit->limit);
		json_add_number(out, "used", limit->used);
		text_add_char(out, '}');
	}
	text_add_char(out, ']');
}

static void json_add_missed(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	const char *before = ",\"missed\":[{\"what\":";
	struct text line = {0};

	for (size_t i = 0; i < status->missed_count; i++) {
		if (!status->missed[i].count)
			continue;
		json_add_text(out, before, status->missed[i].what);
		json_add_number(out, "count", (int64_t)status->missed[i].count);
		text_add_char(out, '}');
		before = ",{\"what\":";
	}
	text_add_string(out, before[1] == '{' ? "]" : ",\"missed\":[]");
	text_add_string(out, ",\"absent\":[");
	for (size_t i = 0; i < status->absent_count; i++) {
		text_clear(&line);
		absent_add(&line, interval->grid->list, &status->absent[i]);
		json_add_text(out, i ? "," : "", text_string(&line));
	}
	if (interval->unrecorded) {
		text_clear(&line);
		text_add_string(&line, "not in the recording: ");
		unrecorded_add(&line, interval->unrecorded, NULL);
		json_add_text(out, status->absent_count ? "," : "", text_string(&line));
	}
	text_add_char(out, ']');
	text_done(&line);
}

void grouped_json_head(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	const struct tally *tally = interval->tally;
	char from[CLOCK_ISO_SIZE], until[CLOCK_ISO_SIZE];

	json_add_text(out, "{\"report\":{\"host\":", status->host);
	json_add_text(out, ",\"kernel\":", status->kernel);
	json_add_number(out, "cpus", status->cpus);
	json_add_number(out, "rate_hz", status->rate_hz);
	if (tally->scans) {
		clock_format_iso(tally->from_us, from);
		clock_format_iso(tally->until_us, until);
		text_add_format(out, ",\"begin\":\"%s\",\"end\":\"%s\"", from, until);
	}
	json_add_number(out, "elapsed_us", tally->elapsed_us);
	json_add_number(out, "clock_step_us", tally->clock_step_us);
	json_add_number(out, "scans", tally->scans);
	json_add_number(out, "samples", tally->samples);
	json_add_number(out, "threads_max", tally->threads ? tally->threads_max : ABSENT);
	json_add_number(out, "active_max", tally->active_max);
	json_add_number(out, "forks", tally->forks);
	json_add_number(out, "execs", tally->execs);
	json_add_number(out, "exits", tally->exits);
	json_add_pressure(out, "pressure", status->pressure);
	json_add_pressure(out, "cgroup_pressure", status->group_pressure);
	json_add_quotas(out, status);
	json_add_io_limits(out, status);
	json_add_missed(out, interval);
	json_add_number(out, "own_cpu_us",
			status->own_cpu_ns == ABSENT ? ABSENT : status->own_cpu_ns / NS_PER_US);
	text_add_string(out, "}}\n");
}
