/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -o DIR: takes scans from the source, writes their rows, and hands them to the recorder, which
 * never makes sampling wait. */
#include "run_record.h"
#include "keeper/keeper.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/signals.h"
#include "recording/archive.h"
#include "recording/held_scans.h"
#include "recording/recorder.h"
#include "recording/recording_host.h"
#include "report/value.h"
#include "recording/scan_rows.h"
#include "recording/stack_dict.h"

#include <errno.h>
#include <string.h>

#define DISTRIBUTIONS_US (60 * US_PER_SECOND)
#define AROUND_DEFAULT_US (30 * US_PER_SECOND)

struct record {
	struct run *run;
	struct recorder *recorder;
	struct held_scans held; /* scans that are recorded around moments only: --when */
	bool moment;		/* the present scan is such a moment */
	bool held_reported;	/* the user was informed that scans were dropped */
	int64_t rows;		/* rows of samples in the present scan */
	struct archive archive;
	struct text headers[RECORD_KIND_COUNT];
};

/* Returns the present scan's rows of that kind; the caller adds to them. */
static struct text *rows_of(struct record *record, enum record_kind kind)
{
	return record->run->config->when ? held_scans_rows(&record->held, kind)
					 : recorder_rows(record->recorder, kind);
}

/* Ends the rows of the present scan. */
static void rows_put(struct record *record, int64_t time_us)
{
	if (record->run->config->when)
		held_scans_put(&record->held, time_us, record->run->total_us, record->moment);
	else
		recorder_put(record->recorder, time_us);
	record->moment = false;
}

/* Adds the rows of run->grid. */
static void rows_add(struct record *record, enum record_kind kind)
{
	renderer_csv.add(rows_of(record, kind), &(struct interval){.grid = &record->run->grid});
}

static int batch_take(void *take_to, const struct scan *batch)
{
	struct record *record = take_to;
	struct run *run = record->run;
	struct scan archived;

	run_note_sleeps(run, batch);
	grid_fill_rows(&run->grid, &run->list, batch);
	rows_add(record, RECORD_SAMPLES);
	for (size_t i = 0; run->config->when && !record->moment && i < batch->count; i++)
		record->moment = filter_accepts(&run->when, &batch->samples[i]);
	record->rows += (int64_t)batch->count;
	archived = archive_take(&record->archive, batch);
	if (archived.count) {
		grid_fill_rows(&run->grid, &run->list, &archived);
		rows_add(record, RECORD_ARCHIVE);
	}
	return 0;
}

static void stack_take(void *to, const struct stack_entry *entry)
{
	struct record *record = to;

	if (stack_dict_written_add(&record->run->stack_dict.written, entry))
		stack_dict_row_add(rows_of(record, RECORD_STACKS), entry);
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
		record->run->report(text_string(&words));
	text_done(&words);
}

/* Adds the rows that each part must have, so that it can be read without the parts before it. */
static void part_begin(struct record *record, int64_t time_us)
{
	struct run *run = record->run;

	recording_host_add(rows_of(record, RECORD_HOST), time_us, &run->status_before,
			   text_string(&run->command));
	stack_dict_written_clear(&run->stack_dict.written);
	if (run->source->stacks_anew)
		run->source->stacks_anew(run->source);
}

static int distributions_add(struct record *record, struct error *e)
{
	struct run *run = record->run;
	int err = run_take_traced(run, true, e);

	if (err)
		return err;
	distribution_rows_fill(&run->distributions, &run->tally, &run->grid);
	rows_add(record, RECORD_DISTRIBUTIONS);
	distribution_table_clear(&run->distributions);
	run->tally = (struct tally){0};
	return 0;
}

static void events_add(struct record *record)
{
	struct run *run = record->run;

	run_take_events(run);
	event_rows_fill(&run->events, &run->grid);
	rows_add(record, RECORD_EVENTS);
	event_list_clear(&run->events);
}

/* Ends the scan: all samples were taken; scan has the rest. */
static int scan_end(struct record *record, const struct scan *scan, struct error *e)
{
	int64_t every_us = record->run->config->interval_us ? record->run->config->interval_us
							    : DISTRIBUTIONS_US;
	struct run *run = record->run;
	struct scan_row row = {
		.time_us = scan->time_us,
		.weight_us = scan->weight_us,
		.threads = (int64_t)scan->threads,
		.clock_step_us = scan->clock_step_us,
	};
	int err;

	batch_take(record, scan);
	recorder_miss(record->recorder, RECORD_SCANS, run_find_gap(run, scan));
	row.missing = (int64_t)recorder_missing(record->recorder, RECORD_SCANS);
	row.samples = record->rows;
	record->rows = 0;
	scan_row_add(rows_of(record, RECORD_SCANS), &row);
	if (archive_scan_end(&record->archive, scan, &row)) {
		row.missing = (int64_t)recorder_missing(record->recorder, RECORD_ARCHIVE_SCANS);
		scan_row_add(rows_of(record, RECORD_ARCHIVE_SCANS), &row);
	}
	if (run_lists_events(run))
		events_add(record);
	err = run_take_traced(run, false, e);
	tally_add(&run->tally, scan);
	if (!err && run->distributions.kind_count &&
	    sum(run->tally.elapsed_us, scan->weight_us / 2) >= every_us)
		err = distributions_add(record, e);
	if (recorder_begins(record->recorder))
		part_begin(record, scan->time_us);
	rows_put(record, scan->time_us);
	words_report(record);
	return err;
}

static bool record_ended(const struct run *run, int64_t weight_us)
{
	return signals_stop() || (run->config->count && run->shown >= run->config->count) ||
	       (run->end_us && sum(run->total_us, weight_us / 2) >= run->end_us);
}

static int record_loop(struct record *record, struct error *e)
{
	struct run *run = record->run;
	struct scan scan = {0};
	int err = 0;

	while (!err && !record_ended(run, scan.weight_us)) {
		int more = run->source->next(run->source, &scan, e);

		if (more == -EINTR)
			continue;
		if (more <= 0)
			return more;
		run_report_clock(run, &scan);
		err = scan_end(record, &scan, e);
		run->shown++;
		run->total_us = sum(run->total_us, scan.weight_us);
		run_release(run);
	}
	return err;
}

/* Records the rows since the last scan. */
static int record_end(struct record *record, struct error *e)
{
	struct run *run = record->run;
	int err = 0;

	if (run->source->stacks_end)
		run->source->stacks_end(run->source);
	if (run_lists_events(run))
		events_add(record);
	if (run->distributions.kind_count)
		err = distributions_add(record, e);
	rows_put(record, clock_utc_us());
	if (run->config->when)
		held_scans_end(&record->held);
	return err;
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
	struct run *run = record->run;

	header_make(record, RECORD_SAMPLES, &run->list);
	text_add_string(&record->headers[RECORD_SCANS], SCAN_ROWS_HEADER);
	text_add_string(&record->headers[RECORD_STACKS], STACK_DICT_HEADER);
	header_make(record, RECORD_EVENTS, &run->events.list);
	header_make(record, RECORD_DISTRIBUTIONS, distribution_rows_list(&run->distributions));
	text_add_string(&record->headers[RECORD_HOST], RECORDING_HOST_HEADER);
	header_make(record, RECORD_ARCHIVE, &run->list);
	text_add_string(&record->headers[RECORD_ARCHIVE_SCANS], SCAN_ROWS_HEADER);
}

/* True if samples have hashes of stacks, which a dictionary explains. */
static bool lists_stack_ids(const struct column_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == KIND_HEX && list->items[i]->needs & NEEDS_STACKS)
			return true;
	return false;
}

static void source_begin(struct record *record)
{
	struct source *source = record->run->source;

	source->take = batch_take;
	source->take_to = record;
	if (lists_stack_ids(&record->run->list)) {
		source->stack_take = stack_take;
		source->stack_take_to = record;
	}
}

/* Writes the scans that were recorded before a call that does not end (keeper/keeper.h). */
static void record_save(void *of)
{
	struct record *record = of;
	struct error e = {0};

	recorder_close(record->recorder, &e);
	error_done(&e);
	run_report_footer(record->run);
}

int run_record(struct run *run, struct error *e)
{
	const struct config *config = run->config;
	struct record record = {.run = run};
	struct recorder_options options = {
		.path = config->record,
		.host = run->status_before.host,
		.flush_us = config->flush_us,
		.retention = config->retention,
		.written_ns = &keeper_progress()->delivered_ns,
	};
	struct error second = {0};
	int err, err_of_end;

	headers_make(&record);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		options.headers[kind] = text_string(&record.headers[kind]);
	err = recorder_open(&options, &record.recorder, e);
	if (!err) {
		record.held = (struct held_scans){
			.recorder = record.recorder,
			.around_us = config->around_us ? config->around_us : AROUND_DEFAULT_US,
		};
		if (config->archive_hz)
			record.archive.every_us = US_PER_SECOND / config->archive_hz;
		source_begin(&record);
		keeper_saves(record_save, &record);
		err = record_loop(&record, e);
		keeper_saves(NULL, NULL);
		err_of_end = record_end(&record, err ? &second : e);
		err = err ? err : err_of_end;
		words_report(&record);
		err_of_end = recorder_close(record.recorder, err ? &second : e);
		err = err ? err : err_of_end;
		error_done(&second);
		held_scans_done(&record.held);
		archive_done(&record.archive);
	}
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		text_done(&record.headers[kind]);
	return err;
}
