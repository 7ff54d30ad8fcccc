/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_rows.h"
#include "render/renderer.h"
#include "report/late_waits.h"
#include "report/report.h"
#include "report/value.h"

#include <errno.h>

/* Cells: the inner loop of CSV and JSON ---------------------------------------------------------
 */

/* Writes a cell and its separator from the one before. scratch: for its use. */
typedef void cell_writer(struct text *out, const struct column *column, union value value,
			 bool first, struct text *scratch);

/* Adds `count` cells of the row above again. starts: offsets of these cells, and the end of the
 * last one; all but that end are replaced by the offsets of the copies. */
static void cells_repeat(struct text *out, size_t *starts, size_t count)
{
	size_t length = starts[count] - starts[0], by = out->length - starts[0];
	char *at = text_reserve(out, length);

	memcpy(at, out->bytes + starts[0], length);
	text_end(out, at + length);
	for (size_t i = 0; i < count; i++)
		starts[i] += by;
}

/* Adds each row of the grid, and row_end after it. Many cells, such as the time, have the value of
 * the cell above: the bytes of such neighbours are copied at once, which is cheaper than any
 * formatting.
 */
static void cells_add(struct text *out, const struct grid *grid, cell_writer *add,
		      const char *row_end)
{
	size_t count = grid->list->count, starts[COLUMN_LIST_MAX + 1];
	const union value *above = NULL;
	struct text scratch = {0};

	for (size_t row = 0; row < grid->row_count; row++) {
		const union value *values = grid_row(grid, row);

		for (size_t i = 0, from; i < count;) {
			for (from = i; above && i < count && above[i].number == values[i].number;)
				i++;
			if (i > from) {
				cells_repeat(out, &starts[from], i - from);
				continue;
			}
			starts[i] = out->length;
			add(out, grid->list->items[i], values[i], i == 0, &scratch);
			i++;
		}
		starts[count] = out->length;
		text_add_string(out, row_end);
		above = values;
	}
	text_done(&scratch);
}

/* Adds plain text in quotes, which CSV and JSON write alike; most names are plain. False: it is not
 * plain. */
static bool cell_add_plain(struct text *out, const struct column *column, union value value)
{
	size_t length;
	char *at;

	if (column->kind != KIND_TEXT)
		return false;
	length = strlen(value.text);
	if (!text_is_plain(value.text, length))
		return false;
	at = text_reserve(out, length + 2);
	*at++ = '"';
	memcpy(at, value.text, length + 1);
	at[length] = '"';
	text_end(out, at + length + 1);
	return true;
}

/* Adds a string in quotes, with the sign `escape` before each of those in `escaped`. */
static void cell_add_escaped(struct text *out, const char *string, const char *escaped, char escape)
{
	text_add_char(out, '"');
	for (;;) {
		size_t plain = strcspn(string, escaped);

		text_add(out, string, plain);
		string += plain;
		if (!*string)
			break;
		text_add_char(out, escape);
		text_add_char(out, *string++);
	}
	text_add_char(out, '"');
}

/* Adds a value that is not absent; escaped, escape: as for cell_add_escaped(). */
static void cell_add_value(struct text *out, const struct column *column, union value value,
			   struct text *scratch, const char *escaped, char escape)
{
	if (!column_is_text(column)) {
		value_add(out, column, value);
	} else if (!cell_add_plain(out, column, value)) {
		text_clear(scratch);
		value_add(scratch, column, value);
		cell_add_escaped(out, text_string(scratch), escaped, escape);
	}
}

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

/* Adds the first line of CSV: the columns, and those of each row's interval. */
static void grouped_csv_begin(struct text *out, const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		text_add_format(out, "%s,", list->items[i]->name);
	text_add_string(out, "begin,end,elapsed_us,scans\n");
}

/* Makes the end of each row of an interval: begin and end of the interval, and the number of its
 * scans. */
static void grouped_csv_end(struct text *row_end, const struct interval *interval)
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

/* Adds an object with what is known of the host and the interval. */
static void grouped_json_head(struct text *out, const struct interval *interval)
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

/* CSV as RFC 4180 has it, but with bare line feeds: a header line, then a row per sample. Text is
 * always in quotes, so that "" and absent differ; numbers never are. */

static void csv_begin(struct text *out, const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			text_add_char(out, ',');
		text_add_string(out, list->items[i]->name);
	}
	text_add_char(out, '\n');
}

static inline void csv_add_cell(struct text *out, const struct column *column, union value value,
				bool first, struct text *scratch)
{
	if (!first)
		text_add_char(out, ',');
	if (value_is_absent(column, value))
		return;
	cell_add_value(out, column, value, scratch, "\"", '"');
}

/* Adds a cell that no spreadsheet runs as a formula: a thread may be called "=cmd|..." (OWASP, CSV
 * injection).
 */
static inline void csv_add_safe_cell(struct text *out, const struct column *column,
				     union value value, bool first, struct text *scratch)
{
	const char *string;

	if (value_is_absent(column, value) || !column_is_text(column)) {
		csv_add_cell(out, column, value, first, scratch);
		return;
	}
	if (!first)
		text_add_char(out, ',');
	text_clear(scratch);
	text_add_char(scratch, '\'');
	value_add(scratch, column, value);
	string = text_string(scratch);
	cell_add_escaped(out, string[1] && strchr("=+-@\t\r", string[1]) ? string : string + 1,
			 "\"", '"');
}

static void csv_add_rows(struct text *out, const struct interval *interval, const char *row_end)
{
	if (interval->formulas_kept_out)
		cells_add(out, interval->grid, csv_add_safe_cell, row_end);
	else
		cells_add(out, interval->grid, csv_add_cell, row_end);
}

static void csv_add(struct text *out, const struct interval *interval)
{
	csv_add_rows(out, interval, "\n");
}

static void csv_add_grouped(struct text *out, const struct interval *interval)
{
	struct text row_end = {0};

	grouped_csv_end(&row_end, interval);
	csv_add_rows(out, interval, text_string(&row_end));
	text_done(&row_end);
}

const struct renderer renderer_csv = {
	.name = "csv",
	.kind = RENDERER_ROWS,
	.of_groups = &renderer_csv_grouped,
	.has_formulas = true,
	.columns = ROW_COLUMNS_DEFAULT,
	.begin = csv_begin,
	.add = csv_add,
};

const struct renderer renderer_csv_grouped = {
	.name = "csv report",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.accounts = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.begin = grouped_csv_begin,
	.add = csv_add_grouped,
};

/* JSON lines: an object per sample; every object has every column, absent ones as null. */

/* Adds a cell. Text went through text_add_printable(), so only quotes and backslashes are to be
 * escaped (RFC 8259, 7). */
static inline void json_add_cell(struct text *out, const struct column *column, union value value,
				 bool first, struct text *scratch)
{
	text_add(out, first ? "{\"" : ",\"", 2);
	text_add_string(out, column->name);
	text_add(out, "\":", 2);
	if (value_is_absent(column, value)) {
		text_add_string(out, "null");
		return;
	}
	cell_add_value(out, column, value, scratch, "\"\\", '\\');
}

static void json_add(struct text *out, const struct interval *interval)
{
	cells_add(out, interval->grid, json_add_cell, "}\n");
}

const struct renderer renderer_json = {
	.name = "json",
	.kind = RENDERER_ROWS,
	.of_groups = &renderer_json_grouped,
	.of_findings = &renderer_json_findings,
	.lists = true,
	.columns = ROW_COLUMNS_DEFAULT,
	.add = json_add,
};

static void json_add_grouped(struct text *out, const struct interval *interval)
{
	struct text row_end = {0};

	grouped_json_head(out, interval);
	grouped_json_end(&row_end, interval);
	cells_add(out, interval->grid, json_add_cell, text_string(&row_end));
	text_done(&row_end);
}

const struct renderer renderer_json_grouped = {
	.name = "json report",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.accounts = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = json_add_grouped,
};

/* Rows of samples (--csv, --json), which are written with each scan, or wait for the peer that they
 * wait for (--patience). */

struct rows {
	struct report *report;
	struct late_waits late;
};

/* Columns of /proc values are valid only during a scan. */
static int rows_begin(void *state, struct report *report)
{
	struct rows *rows = state;

	if (report->grouped || report->record || report->events)
		return 0;
	rows->report = report;
	if (!report->config->patience_us || !report->list.wide)
		return 1;
	return error_set(report->e, EINVAL, EXIT_USAGE,
			 "--patience can't go with columns of /proc/TID/stat, status and io, which "
			 "are those of the scan");
}

static uint64_t rows_needs(const void *state)
{
	const struct rows *rows = state;

	return column_list_needs(&rows->report->list);
}

static void rows_write(struct report *report, const struct scan *batch)
{
	grid_fill_rows(&report->grid, &report->list, batch);
	report->renderer->add(&report->out, report->interval);
}

static void rows_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct rows *rows = state;
	struct sample row = *sample;

	rows_write(rows->report, &(struct scan){.samples = &row, .count = 1});
}

static bool rows_take(void *state, struct report *report, const struct scan *batch)
{
	struct rows *rows = state;

	if (!report->config->patience_us) {
		rows_write(report, batch);
		return false;
	}
	rows->late.now_us = sum(report->total_us, batch->weight_us);
	for (size_t i = 0; i < batch->count; i++)
		late_waits_queue(&rows->late, &batch->samples[i], rows_add, rows);
	return false;
}

/* Writes all rows that wait: no more facts will be found. */
static void rows_save(void *state, struct report *report)
{
	struct rows *rows = state;

	late_waits_end(&rows->late, rows_add, rows);
}

static int rows_collect(void *state, struct report *report, bool all)
{
	bool crowded = report->source->host && report->source->host->crowded(report->source);
	struct rows *rows = state;

	if (all)
		rows_save(rows, report);
	else
		late_waits_pass(&rows->late,
				crowded ? INT64_MAX
					: sum(report->total_us, report->scan->weight_us) -
						  report->config->patience_us,
				rows_add, rows);
	return 0;
}

static bool rows_hold(const void *state)
{
	const struct rows *rows = state;

	return rows->late.count;
}

static void rows_done(void *state)
{
	struct rows *rows = state;

	late_waits_done(&rows->late);
}

const struct report_part rows_part = {.bytes = sizeof(struct rows),
				      .begin = rows_begin,
				      .needs = rows_needs,
				      .take = rows_take,
				      .add = rows_add,
				      .collect = rows_collect,
				      .holds = rows_hold,
				      .save = rows_save,
				      .done = rows_done};
