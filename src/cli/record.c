/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -o DIR: writes rows of each scan, and hands them to the recorder, which never makes sampling
 * wait. */
#include "cli/record.h"
#include "cli/config.h"
#include "keeper/keeper.h"
#include "cli/part_table.h"
#include "base/clock.h"
#include "base/progress.h"
#include "recording/archive.h"
#include "recording/finding_rows.h"
#include "recording/held_scans.h"
#include "recording/recorder.h"
#include "recording/recording_host.h"
#include "report/value.h"
#include "recording/scan_rows.h"
#include "recording/stack_dict.h"
#include "render/renderer.h"
#include "report/distribution.h"
#include "report/event_list.h"

#include <errno.h>
#include <string.h>

#define DISTRIBUTIONS_US (60 * US_PER_SECOND)
#define AROUND_DEFAULT_US (30 * US_PER_SECOND)

struct record {
	struct report *report;
	const struct config *config;
	struct filter when;
	bool of_samples; /* moments are samples that `when` accepts, else findings */
	struct recorder *recorder;
	struct held_scans held; /* scans that are recorded around moments only: --when */
	bool held_reported;	/* the user was informed that scans were dropped */
	int64_t rows;		/* rows of samples in the present scan */
	struct archive archive;
	struct grid grid;
	struct stack_dict_written written; /* stacks of the present part */
	struct text command;
	struct source_status status; /* as of the begin */
	struct text headers[RECORD_KIND_COUNT];
};

/* Returns the present scan's rows of that kind; the caller adds to them. */
static struct text *rows_of(struct record *record, enum record_kind kind)
{
	return record->config->when ? held_scans_rows(&record->held, kind)
				    : recorder_rows(record->recorder, kind);
}

struct text *record_rows(struct report *report, enum record_kind kind)
{
	return rows_of(report_state(report, &record_part), kind);
}

/* Ends the rows of the present scan. */
static void rows_put(struct record *record, int64_t time_us)
{
	if (record->config->when)
		held_scans_put(&record->held, time_us, record->report->total_us,
			       record->report->moment);
	else
		recorder_put(record->recorder, time_us);
	record->report->moment = false;
}

/* Adds the rows of the grid. */
static void rows_add(struct record *record, enum record_kind kind)
{
	renderer_csv.add(rows_of(record, kind), &(struct interval){.grid = &record->grid});
}

static bool record_take(void *state, struct report *report, const struct scan *batch)
{
	struct record *record = state;
	struct scan archived;

	grid_fill_rows(&record->grid, &report->list, batch);
	rows_add(record, RECORD_SAMPLES);
	for (size_t i = 0; record->of_samples && !report->moment && i < batch->count; i++)
		report->moment = filter_accepts(&record->when, &batch->samples[i]);
	record->rows += (int64_t)batch->count;
	archived = archive_take(&record->archive, batch);
	if (archived.count) {
		grid_fill_rows(&record->grid, &report->list, &archived);
		rows_add(record, RECORD_ARCHIVE);
	}
	return false;
}

static void stack_take(void *to, const struct stack_entry *entry)
{
	struct record *record = to;

	if (stack_dict_written_add(&record->written, entry))
		stack_dict_row_add(rows_of(record, RECORD_STACKS), entry);
}

static void stacks_miss(struct report *report, struct stack_dict_written *written)
{
	report_miss(report,
		    "stacks beyond their user's share of a dictionary, or of an hour of a "
		    "recording",
		    (int64_t)written->refused);
	written->refused = 0;
}

static void words_report(struct record *record)
{
	struct text words = {0};

	recorder_words(record->recorder, &words);
	if (record->held.dropped && !record->held_reported) {
		text_add_format(&words,
				"tsnap: --keep-around is too long for so many rows: the oldest of "
				"those that wait are dropped above %u MB (a lower -F, or fewer "
				"threads)\n",
				HELD_BYTES_MAX >> 20);
		record->held_reported = true;
	}
	if (words.length)
		record->report->tell(text_string(&words));
	text_done(&words);
}

/* Adds the rows that each part must have, so that it can be read without the parts before it. */
static void part_begin(struct record *record, int64_t time_us)
{
	struct source *source = record->report->source;

	recording_host_add(rows_of(record, RECORD_HOST), time_us, &record->status,
			   text_string(&record->command));
	stack_dict_written_clear(&record->written);
	if (source->host)
		source->host->stacks_anew(source);
}

/* Adds what --trace measured, and forgets it. */
static int traced_add(struct record *record, bool distributions)
{
	struct report *report = record->report;
	struct event_list *events = events_list(report);
	int err = 0;

	if (events) {
		event_rows_fill(events, &record->grid);
		rows_add(record, RECORD_EVENTS);
		event_list_clear(events);
	}
	if (distributions && report->distributions) {
		struct distribution_table *table = report_state(report, &distributions_part);

		err = distributions_part.collect(table, report, true);
		distribution_rows_fill(table, &report->tally, &record->grid);
		rows_add(record, RECORD_DISTRIBUTIONS);
		distribution_table_clear(table);
		report->tally = (struct tally){0};
	}
	return err;
}

/* Ends the scan: all samples were taken. */
static int scan_end(struct record *record)
{
	struct report *report = record->report;
	const struct scan *scan = report->scan;
	int64_t every_us =
		record->config->interval_us ? record->config->interval_us : DISTRIBUTIONS_US;
	struct scan_row row = {
		.time_us = scan->time_us,
		.weight_us = scan->weight_us,
		.threads = (int64_t)scan->threads,
		.clock_step_us = scan->clock_step_us,
	};
	int err;

	recorder_miss(record->recorder, RECORD_SCANS, report->gap_scans);
	row.missing = (int64_t)recorder_missing(record->recorder, RECORD_SCANS);
	row.samples = record->rows;
	record->rows = 0;
	scan_row_add(rows_of(record, RECORD_SCANS), &row);
	if (archive_scan_end(&record->archive, scan, &row)) {
		row.missing = (int64_t)recorder_missing(record->recorder, RECORD_ARCHIVE_SCANS);
		scan_row_add(rows_of(record, RECORD_ARCHIVE_SCANS), &row);
	}
	tally_add(&report->tally, scan);
	err = traced_add(record, sum(report->tally.elapsed_us, scan->weight_us / 2) >= every_us);
	if (recorder_begins(record->recorder))
		part_begin(record, scan->time_us);
	rows_put(record, scan->time_us);
	words_report(record);
	return err;
}

/* Records the rows since the last scan, and ends the recording. */
static int record_end(struct record *record)
{
	struct source *source = record->report->source;
	struct error second = {0};
	int err = 0, err_of_close;

	if (source->host)
		source->host->stacks_end(source);
	err = traced_add(record, true);
	rows_put(record, clock_utc_us());
	if (record->config->when)
		held_scans_end(&record->held);
	words_report(record);
	err_of_close = recorder_close(record->recorder, err ? &second : record->report->e);
	record->recorder = NULL;
	error_done(&second);
	return err ? err : err_of_close;
}

static int record_collect(void *state, struct report *report, bool all)
{
	struct record *record = state;

	stacks_miss(report, &record->written);
	return all ? record_end(record) : scan_end(record);
}

static void header_make(struct record *record, enum record_kind kind,
			const struct column_list *list)
{
	struct text *header = &record->headers[kind];

	renderer_csv.begin(header, list);
	header->bytes[--header->length] = '\0'; /* cut the line end */
}

static void headers_make(struct record *record)
{
	const struct report *report = record->report;
	const struct event_list *events = events_list(report);
	const struct column_list *distributions = distributions_list(report);

	header_make(record, RECORD_SAMPLES, &report->list);
	text_add_string(&record->headers[RECORD_SCANS], SCAN_ROWS_HEADER);
	text_add_string(&record->headers[RECORD_STACKS], STACK_DICT_HEADER);
	if (events)
		header_make(record, RECORD_EVENTS, &events->list);
	if (distributions)
		header_make(record, RECORD_DISTRIBUTIONS, distributions);
	text_add_string(&record->headers[RECORD_HOST], RECORDING_HOST_HEADER);
	header_make(record, RECORD_ARCHIVE, &report->list);
	text_add_string(&record->headers[RECORD_ARCHIVE_SCANS], SCAN_ROWS_HEADER);
	text_add_string(&record->headers[RECORD_FINDINGS], FINDING_ROWS_HEADER);
}

/* True if samples have hashes of stacks, which a dictionary explains. */
static bool lists_stack_ids(const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == KIND_HEX && list->items[i]->needs & NEEDS_STACKS)
			return true;
	return false;
}

static int record_begin(void *state, struct report *report)
{
	struct record *record = state;

	if (!report->record)
		return 0;
	record->report = report;
	record->config = report->options;
	record->when.all_states = true;
	record->when.expression.option = "--when";
	record->of_samples = record->config->when && !report->config->condition.given;
	if (record->of_samples &&
	    filter_set_expression(&record->when, record->config->when, report->e))
		return -EINVAL;
	return 1;
}

static uint64_t record_needs(const void *state)
{
	const struct record *record = state;

	return column_list_needs(&record->report->list) |
	       (record->of_samples ? filter_needs(&record->when) : 0);
}

static int record_open(void *state, struct report *report)
{
	struct record *record = state;
	const struct config *config = record->config;
	struct recorder_options options = {
		.path = config->record,
		.flush_us = config->flush_us,
		.retention = config->retention,
		.written_ns = &keeper_progress()->delivered_ns,
	};
	int err;

	report->source->describe(report->source, &record->status);
	options.host = record->status.host;
	text_add_string(&record->command, report->interval->command);
	headers_make(record);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		options.headers[kind] = text_string(&record->headers[kind]);
	err = recorder_open(&options, &record->recorder, report->e);
	if (err)
		return err;
	record->held = (struct held_scans){
		.recorder = record->recorder,
		.around_us = config->around_us ? config->around_us : AROUND_DEFAULT_US,
	};
	if (config->archive_hz)
		record->archive.every_us = US_PER_SECOND / config->archive_hz;
	if (lists_stack_ids(&report->list)) {
		report->source->stack_take = stack_take;
		report->source->stack_take_to = record;
	}
	return 0;
}

/* Writes the scans that were recorded. */
static void record_save(void *state, struct report *report)
{
	struct record *record = state;
	struct error e = {0};

	(void)report;
	recorder_close(record->recorder, &e);
	error_done(&e);
}

static void record_done(void *state)
{
	struct record *record = state;

	held_scans_done(&record->held);
	archive_done(&record->archive);
	grid_done(&record->grid);
	stack_dict_written_clear(&record->written);
	filter_done(&record->when);
	text_done(&record->command);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		text_done(&record->headers[kind]);
}

const struct report_part record_part = {.bytes = sizeof(struct record),
					.begin = record_begin,
					.needs = record_needs,
					.open = record_open,
					.take = record_take,
					.collect = record_collect,
					.save = record_save,
					.done = record_done};

/* The dictionary of stacks beside rows (--stack-dict), which is complete however the run ends ---
 */

static int dict_begin(void *state, struct report *report)
{
	(void)state;
	return report->options->stack_dict && !report->options->replay;
}

static int dict_open(void *state, struct report *report)
{
	return stack_dict_file_begin(state, report->options->stack_dict, report->source, report->e);
}

static int dict_collect(void *state, struct report *report, bool all)
{
	struct stack_dict_file *file = state;
	int err =
		all ? stack_dict_file_end(file, report->e) : stack_dict_file_flush(file, report->e);

	stacks_miss(report, &file->written);
	return err;
}

static void dict_done(void *state)
{
	stack_dict_file_done(state);
}

const struct report_part stack_dict_part = {.bytes = sizeof(struct stack_dict_file),
					    .begin = dict_begin,
					    .open = dict_open,
					    .collect = dict_collect,
					    .done = dict_done};
