/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/sample_file.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/names.h"
#include "recording/row_cache.h"
#include "recording/scan_rows.h"
#include "recording/stack_dict.h"
#include "report/distribution.h"
#include "report/event_list.h"
#include "report/value.h"
#include "sample/column.h"
#include "sample/needs_table.h"
#include "sample/proc_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rows */

/* A row that is zeroed except for reader and needs is valid and has no header line. */
struct sample_row {
	struct csv_reader *reader; /* owned by the caller */
	uint64_t needs;		   /* NEED_*; text that they do not include is not kept */
	struct csv_field fields[CSV_FIELDS_MAX];
	size_t count;				      /* fields that csv_read() filled */
	size_t header_count;			      /* fields of the header line, */
	const struct column *columns[CSV_FIELDS_MAX]; /* and their columns; NULL: none */
	size_t time_field;
	struct row_cell {
		const struct column *column;
		size_t field;
	} cells[CSV_FIELDS_MAX]; /* fields that are read: first those that other rows may share */
	size_t cell_count, shared_count;
	struct row_cache *cache; /* values of the shared ones; NULL: none are kept */
	bool uncached;		 /* the cache waits for those of the next record */
	struct sample_wide next; /* last row that was read */
	struct csv_texts texts;
	char time_text[CLOCK_ISO_SIZE]; /* last time read; the next row most likely has the same */
	int64_t time_value;
};

/* True if few rows have the same value as another one. */
static bool column_differs(const struct column *column)
{
	return column->role != ROLE_KEY ||
	       column->offset == offsetof(struct sample, scan.time_us) ||
	       column->offset == offsetof(struct sample, now.cpu) ||
	       column->offset == offsetof(struct sample, waker.tid);
}

/* A row of the cache is seldom in the CPU's own, and takes as long as some rows to get there. */
#define ROWS_PREFETCHED ((size_t)2)

/* Finds the fields that are read. */
static void sample_row_cells(struct sample_row *row)
{
	size_t fields[CSV_FIELDS_MAX];

	row->cell_count = row->shared_count = 0;
	for (int differ = 0; differ < 2; differ++) {
		for (size_t i = 0; i < row->header_count; i++) {
			const struct column *column = row->columns[i];

			if (!column || column_differs(column) != differ ||
			    (column->needs && !(column->needs & row->needs)))
				continue;
			fields[row->cell_count] = i;
			row->cells[row->cell_count++] = (struct row_cell){column, i};
		}
		row->shared_count = differ ? row->shared_count : row->cell_count;
	}
	row_cache_free(row->cache);
	row->cache = row_cache_new(fields, row->shared_count);
	if (row->cache)
		csv_hash(row->reader, row_cache_hasher(row->cache));
}

/* Takes the record in fields as a header line: finds each field's column. 0, or -errno with e. */
static int sample_row_header(struct sample_row *row, struct error *e)
{
	const struct column **columns = row->columns;
	bool timed = false;

	row->header_count = row->count;
	for (size_t i = 0; i < row->count; i++) {
		const struct column *column = sample_column_find(row->fields[i].text);

		for (size_t j = 0; column && j < i; j++)
			if (columns[j] == column)
				return csv_fail(row->reader, e, column->name, "two such columns");
		columns[i] = column;
		if (column && column->offset == offsetof(struct sample, scan.time_us)) {
			row->time_field = i;
			timed = true;
		}
	}
	sample_row_cells(row);
	if (!timed)
		return csv_fail(
			row->reader, e, "",
			"no header line with a timestamp: not a CSV that tsnap --csv wrote");
	return 0;
}

/* True if the record in fields is another header line. */
static bool sample_row_is_header(const struct sample_row *row)
{
	const struct csv_field *fields = row->fields;

	/* most records are rows, with a time of 2... */
	if (row->time_field < row->count && fields[row->time_field].text[0] == '2')
		return false;
	/* text in rows is quoted, so that none looks like a header line */
	for (size_t i = 0; i < row->count; i++)
		if (!fields[i].quoted && !strcmp(fields[i].text, "timestamp"))
			return true;
	return false;
}

static int time_read(struct sample_row *row, const struct csv_field *field, int64_t *time_us)
{
	if (!field->length || field->length >= sizeof(row->time_text) ||
	    memcmp(field->text, row->time_text, field->length + 1) != 0) {
		if (time_iso_read(field->text, &row->time_value))
			return -EINVAL;
		snprintf(row->time_text, sizeof(row->time_text), "%s", field->text);
	}
	*time_us = row->time_value;
	return 0;
}

/* Reads a field. NULL, or an error text. */
static const char *value_read(struct sample_row *row, const struct column *column,
			      const struct csv_field *field, union value *value)
{
	switch (column->kind) {
	case KIND_TEXT:
		value->text = csv_text_read(&row->texts, field);
		return NULL;
	case KIND_HEX:
		return csv_hex_read(field->text, &value->number) ? "not a 0x number" : NULL;
	case KIND_TIME:
		return time_read(row, field, &value->number) ? "not a time of tsnap" : NULL;
	case KIND_STATE:
		value->number = state_of_name(field->text);
		return value->number == ABSENT ? "not a state" : NULL;
	default:
		return csv_number_read(field->text, &value->number) ? "not a number" : NULL;
	}
}

/* Fills a column of next. 0, or -errno with e. */
static int cell_read(struct sample_row *row, const struct column *column,
		     const struct csv_field *field, struct error *e)
{
	union value value;
	const char *wrong;

	if (!field->length && !field->quoted)
		return 0; /* absent */
	wrong = value_read(row, column, field, &value);
	if (wrong)
		return csv_fail(row->reader, e, column->name, wrong);
	column_set(column, &row->next, value);
	return 0;
}

/* Makes all of next absent. */
static void sample_row_begin(struct sample_row *row)
{
	row->next.sample = *sample_absent();
	if (row->needs & NEEDS_PROC_VALUES) {
		row->next.proc_values = *proc_values_absent();
		row->next.sample.proc_values = &row->next.proc_values;
	}
}

/* Checks what other code relies on. 0, or -errno with e. */
static int sample_row_end(struct sample_row *row, struct error *e)
{
	if (row->next.sample.scan.time_us == ABSENT)
		return csv_fail(row->reader, e, "timestamp", "missing");
	if (row->next.sample.scan.weight_us != ABSENT &&
	    (row->next.sample.scan.weight_us < 0 ||
	     row->next.sample.scan.weight_us > CSV_WEIGHT_MAX_US))
		return csv_fail(row->reader, e, "weight_us", "out of range");
	return 0;
}

/* Takes the record in fields as a row: fills next. 0, or -errno with e. */
static int sample_row_read(struct sample_row *row, struct error *e)
{
	union value shared[CSV_FIELDS_MAX];
	int err = 0;

	if (row->count != row->header_count)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "%s: line %llu: %zu columns where the header line has %zu",
				 row->reader->name, (unsigned long long)row->reader->line,
				 row->count, row->header_count);
	sample_row_begin(row);
	for (size_t i = 0; !err && i < row->cell_count; i++)
		err = cell_read(row, row->cells[i].column, &row->fields[row->cells[i].field], e);
	if (!err)
		err = sample_row_end(row, e);
	if (err || !row->uncached)
		return err;
	for (size_t i = 0; i < row->shared_count; i++)
		shared[i] = column_read(row->cells[i].column, &row->next);
	row_cache_put(row->cache, shared);
	row->next.sample.scan.alike = row_cache_number(row->cache);
	return 0;
}

/* Takes the next record as a row, if an earlier one shares most of its values: fills next. 1; 0:
 * none does, and the record is still the next one; or -errno with e. */
static int sample_row_share(struct sample_row *row, struct error *e)
{
	const union value *shared;
	struct csv_plain record;
	const char *time;
	int err = 0;

	row->uncached = false;
	if (!row->cache || !csv_peek(row->reader, &record) || record.count != row->header_count)
		return 0;
	time = row->time_field ? record.text + record.ends[row->time_field - 1] + 1 : record.start;
	/* a time of 2..., as most rows have: the record is no header line */
	if (time[0] != '"' || time[1] != '2')
		return 0;
	row_cache_prefetch(row->cache, csv_hash_ahead(row->reader, ROWS_PREFETCHED),
			   csv_hash_ahead(row->reader, 2 * ROWS_PREFETCHED));
	shared = row_cache_find(row->cache, &record);
	row->uncached = !shared;
	if (!shared)
		return 0;
	csv_skip(row->reader, &record);
	sample_row_begin(row);
	for (size_t i = 0; i < row->shared_count; i++)
		column_set(row->cells[i].column, &row->next, shared[i]);
	for (size_t i = row->shared_count; !err && i < row->cell_count; i++) {
		const struct column *column = row->cells[i].column;
		struct csv_field field;
		union value number;

		if (column->kind == KIND_NUMBER &&
		    !csv_plain_number(&record, row->cells[i].field, &number.number)) {
			column_set(column, &row->next, number);
			continue;
		}
		field = csv_plain_field(&record, row->cells[i].field);
		err = cell_read(row, column, &field, e);
	}
	row->next.sample.scan.alike = row_cache_number(row->cache);
	if (!err)
		err = sample_row_end(row, e);
	return err ? err : 1;
}

/* Rows that are samples but for some columns, which only their header lines have. */
struct other_rows {
	const struct column *columns;
	size_t column_count;
	size_t trace; /* places of two members in what the columns are of */
	size_t who;
	void (*take)(void *to, const void *row);
	void *to;
};

/* Fills the columns. 0, or -EINVAL. */
static int other_row_read(struct sample_row *row, const struct other_rows *rows, const int *fields,
			  void *other)
{
	const char *trace;

	for (size_t i = 0; i < rows->column_count; i++) {
		const struct column *column = &rows->columns[i];
		const struct csv_field *field = fields[i] < 0 ? NULL : &row->fields[fields[i]];
		union value value;

		if (field && (field->length || field->quoted)) {
			if (value_read(row, column, field, &value))
				return -EINVAL;
		} else if (column->kind == KIND_TEXT) {
			value.text = NULL;
		} else {
			value.number = ABSENT;
		}
		column_set(column, other, value);
	}
	memcpy(&trace, (const char *)other + rows->trace, sizeof(trace));
	return trace ? 0 : -EINVAL;
}

/* Takes the record in fields as a header line. 0, or -errno with e. */
static int other_row_header(struct sample_row *row, const struct other_rows *rows, int *fields,
			    struct error *e)
{
	for (size_t i = 0; i < rows->column_count; i++) {
		fields[i] = -1;
		for (size_t j = 0; j < row->count; j++)
			if (!strcmp(row->fields[j].text, rows->columns[i].name))
				fields[i] = (int)j;
	}
	return sample_row_header(row, e);
}

/* Reads all rows into `other`, and has each taken. */
static int other_rows_read(struct csv_input *input, const char *name, const struct other_rows *rows,
			   void *other, struct error *e)
{
	struct csv_reader reader = {.fd = -1, .input = input, .name = name};
	struct sample_row *row = memory_get(sizeof(*row));
	int *fields = memory_get(rows->column_count * sizeof(*fields)), more;
	struct error unsaid = {0};

	row->reader = &reader;
	row->needs = ~NEEDS_PROC_VALUES;
	while ((more = csv_read(&reader, row->fields, &row->count, e)) > 0) {
		if (!row->header_count || sample_row_is_header(row)) {
			more = other_row_header(row, rows, fields, e);
			if (more)
				break;
		} else if (!sample_row_read(row, &unsaid)) {
			memcpy((char *)other + rows->who, &row->next.sample,
			       sizeof(row->next.sample));
			if (!other_row_read(row, rows, fields, other))
				rows->take(rows->to, other);
		}
	}
	error_done(&unsaid);
	text_done(&row->texts.scratch);
	row_cache_free(row->cache);
	csv_done(&reader);
	free(fields);
	free(row);
	return more;
}

struct event_callback_to {
	recorded_event_callback *take;
	void *to;
};

static void event_row_take(void *to, const void *row)
{
	const struct event_callback_to *callback = to;

	callback->take(callback->to, row);
}

int event_rows_read(struct csv_input *input, const char *name, recorded_event_callback *take,
		    void *to, struct error *e)
{
	struct event_callback_to callback = {take, to};
	struct event event = {0};
	const struct other_rows rows = {event_columns,
					event_column_count,
					offsetof(struct event, trace),
					offsetof(struct event, who),
					event_row_take,
					&callback};

	return other_rows_read(input, name, &rows, &event, e);
}

struct distribution_callback_to {
	recorded_distribution_callback *take;
	void *to;
};

static void distribution_row_take(void *to, const void *row)
{
	const struct distribution_callback_to *callback = to;

	callback->take(callback->to, row);
}

int distribution_rows_read(struct csv_input *input, const char *name,
			   recorded_distribution_callback *take, void *to, struct error *e)
{
	struct distribution_callback_to callback = {take, to};
	struct recorded_distribution recorded = {0};
	const struct other_rows rows = {recorded_distribution_columns,
					recorded_distribution_column_count,
					offsetof(struct recorded_distribution, trace),
					offsetof(struct recorded_distribution, who),
					distribution_row_take,
					&callback};

	return other_rows_read(input, name, &rows, &recorded, e);
}

#define SCAN_ROWS_MAX (1u << 20)
#define SCAN_ROWS_GATHERED_MAX (1u << 18) /* of a scan that is in memory as a whole: 214 MB */
#define ROUNDED_US 2		 /* most that rounding makes of a thread's times and a weight */
#define AHEAD_BYTES (256u << 10) /* size of input from which a thread of its own reads ahead */

/* A thread of the scan before. */
struct seen_thread {
	int64_t tid, state, state_us;
};

struct sample_list {
	struct sample *samples;
	size_t count, capacity;
};

struct sample_file {
	struct source source; /* first member, so that a source is a sample_file */
	struct csv_reader reader;
	struct recording_part part;
	const struct filter *filter;
	uint64_t needs;		   /* requested needs, and those of the filter */
	struct sample_row row;	   /* row that was read ahead, which begins the next scan */
	struct stack_dict *stacks; /* NULL: none */

	struct sample_input *input;
	struct scan_rows *scan_rows; /* NULL: scans follow from the times of samples */
	struct scan_row scan_now; /* row of the scan being gathered; time_us is ABSENT: not known */
	uint64_t rows_bad;	  /* rows that can't be read and were skipped */
	uint64_t rows_beyond;	  /* rows beyond the limit of a scan */

	struct sample_list taken, refused; /* samples of the scan being gathered */
	struct proc_values_pool proc_values;
	size_t rows;
	/* times of the scan being gathered, as in struct scan; time_us is ABSENT before its first
	 * row */
	int64_t time_us, weight_us, silent_us, clock_step_us;
	int64_t previous_us;  /* time of the scan before it; ABSENT: none */
	bool apart;	      /* a header line is between the two: nothing may have been sampled */
	int64_t ahead_us;     /* time between the two that weights do not account for */
	bool evidence_sought; /* rows may show that the clock was set in that time */
	/* rows of the scan being gathered, and of the one before it with an index by tid, if that
	 * is wanted */
	struct seen_thread *seen, *before;
	size_t seen_count, seen_capacity, before_count, before_capacity;
	struct index by_tid;
	bool next_read;
	/* header lines until now: columns that they have, by their place in sample_columns, and the
	 * needs of these */
	bool *recorded;
	uint64_t recorded_needs;
	bool has_class;	    /* one of them has wait classes */
	uint64_t unclassed; /* samples in S that were refused as they have no wait class */
};

/* Takes the record that was read, a header line. */
static int header_read(struct sample_file *file, struct error *e)
{
	int err;

	file->apart = true;
	err = sample_row_header(&file->row, e);
	for (size_t i = 0; !err && i < file->row.header_count; i++) {
		const struct column *column = file->row.columns[i];

		if (column) {
			file->recorded[column - sample_columns] = true;
			file->recorded_needs |= column->needs;
			file->has_class |= column->offset == offsetof(struct sample, wait.why);
		}
	}
	return err;
}

static bool sample_file_lacks(const struct source *source, const struct column *column)
{
	const struct sample_file *file = (const struct sample_file *)source;
	uint64_t made_of = 0;

	if (column->needs & NEEDS_DERIVED)
		made_of = needs_dearest(column->needs)->implies;
	if (file->stacks)
		made_of |= column->needs & NEEDS_STACKS ? NEEDS_STACKS : 0;
	/* weights follow from the times of scans */
	return file->row.header_count &&
	       column->offset != offsetof(struct sample, scan.weight_us) &&
	       !file->recorded[column - sample_columns] && !(file->recorded_needs & made_of);
}

/* True: skips a row that can't be read, and empties e. Only in a compressed recording, which has
 * many rows. */
static bool row_pass(struct sample_file *file, struct error *e)
{
	if (!file->input->lenient)
		return false;
	error_done(e);
	file->rows_bad++;
	return true;
}

/* Reads the next row into file->row, of any time. 1, 0 at the end, or -errno. */
static int row_any(struct sample_file *file, struct error *e)
{
	struct sample_row *row = &file->row;

	for (;;) {
		int err = sample_row_share(row, e);

		if (err > 0)
			return err;
		if (!err) {
			err = csv_read(&file->reader, row->fields, &row->count, e);
			if (!err || (err < 0 && err != -EINVAL))
				return err;
			if (err > 0 && sample_row_is_header(row)) {
				err = header_read(file, e);
				if (err)
					return err;
				continue;
			}
			if (err > 0)
				err = sample_row_read(row, e);
			if (!err)
				return 1;
		}
		if (!row_pass(file, e))
			return err;
	}
}

/* Reads the next row of the part into file->row. 1, 0 at the end, or -errno. */
static int row_next(struct sample_file *file, struct error *e)
{
	for (;;) {
		int err = row_any(file, e);
		int64_t time_us = file->row.next.sample.scan.time_us;

		if (err <= 0)
			return err;
		recording_part_date(&file->part, time_us);
		if (recording_part_has(&file->part, time_us))
			return 1;
	}
}

/* Keeps the threads of the scan before, and begins those of the next one. */
static void seen_turn(struct sample_file *file)
{
	struct seen_thread *before = file->before;
	size_t capacity = file->before_capacity;

	file->before = file->seen;
	file->before_capacity = file->seen_capacity;
	file->before_count = file->seen_count;
	file->seen = before;
	file->seen_capacity = capacity;
	file->seen_count = 0;
}

/* Finds how far the scan is from where the weight puts it: times are by a clock that may be set,
 * weights and times in a state by one that can't. The clock may be set forward, or scans may have
 * seen no thread; a thread that goes on with what it did in the scan before shows that it was the
 * former. A clock that is set back needs no evidence, unless a header line may begin another
 * recording. step_us: what the recording says of it; ABSENT: nothing. */
static void scan_place(struct sample_file *file, int64_t time_us, int64_t weight_us,
		       int64_t step_us)
{
	bool apart = file->apart || file->previous_us == ABSENT;

	file->ahead_us = file->previous_us == ABSENT ? 0 : time_us - file->previous_us - weight_us;
	/* less than half a scan is jitter between two clocks */
	file->silent_us =
		!apart && !file->scan_rows && file->ahead_us > weight_us / 2 ? file->ahead_us : 0;
	file->clock_step_us = !apart && file->ahead_us <= -CLOCK_STEP_US ? file->ahead_us : 0;
	file->evidence_sought =
		file->silent_us || (!file->clock_step_us && llabs(file->ahead_us) >= CLOCK_STEP_US);
	file->previous_us = time_us;
	file->apart = false;
	seen_turn(file);
	if (step_us != ABSENT) {
		file->clock_step_us = step_us;
		file->evidence_sought = false;
	}
	if (!file->evidence_sought)
		return;
	index_empty(&file->by_tid);
	for (size_t i = 0; i < file->before_count; i++)
		*index_put(&file->by_tid, (uint64_t)file->before[i].tid, NULL) = i + 1;
}

/* Begins a scan with file->row. */
static void scan_start(struct sample_file *file)
{
	const struct sample *first = &file->row.next.sample;
	int64_t since_us = file->apart || file->previous_us == ABSENT
				   ? 0
				   : first->scan.time_us - file->previous_us;

	file->time_us = first->scan.time_us;
	if (first->scan.weight_us != ABSENT)
		file->weight_us = first->scan.weight_us;
	else if (since_us >= 0) /* else the clock was set back, and scans go on as before */
		file->weight_us = since_us;
	scan_place(file, file->time_us, file->weight_us,
		   file->scan_now.time_us == ABSENT ? ABSENT : file->scan_now.clock_step_us);
	file->taken.count = file->refused.count = file->rows = 0;
	proc_values_pool_clear(&file->proc_values);
}

/* Notes a row, which may prove that the clock was set. */
static void seen_note(struct sample_file *file, const struct sample *sample)
{
	const struct seen_thread seen = {sample->thread.tid, sample->now.state,
					 sample->now.state_us};
	const struct seen_thread *before;
	const uint64_t *at;

	if (seen.tid == ABSENT || seen.state_us == ABSENT)
		return;
	file->seen =
		memory_grow(file->seen, &file->seen_capacity, file->seen_count + 1, sizeof(seen));
	file->seen[file->seen_count++] = seen;
	if (!file->evidence_sought)
		return;
	at = index_find(&file->by_tid, (uint64_t)seen.tid);
	before = at ? &file->before[*at - 1] : NULL;
	if (!before || before->state != seen.state ||
	    llabs(sum(sum(seen.state_us, -before->state_us), -file->weight_us)) > ROUNDED_US)
		return;
	file->evidence_sought = false;
	file->silent_us = 0;
	if (llabs(file->ahead_us) >= CLOCK_STEP_US)
		file->clock_step_us = file->ahead_us;
}

static struct scan scan_gathered(const struct sample_file *file)
{
	return (struct scan){
		.time_us = file->time_us,
		.weight_us = file->weight_us,
		.silent_us = file->silent_us,
		.clock_step_us = file->clock_step_us,
		.samples = file->taken.samples,
		.count = file->taken.count,
		.refused = file->refused.samples,
		.refused_count = file->refused.count,
		.threads = file->scan_now.time_us == ABSENT ? 0 : (size_t)file->scan_now.threads,
	};
}

static int batch_give(struct sample_file *file)
{
	struct scan batch = scan_gathered(file);
	int err;

	file->taken.count = file->refused.count = 0;
	err = file->source.take(file->source.take_to, &batch);
	proc_values_pool_clear(&file->proc_values);
	return err;
}

/* True if the filter would have accepted the sample if its wait class said that it works. */
static bool is_unclassed(const struct sample_file *file, const struct sample *sample)
{
	return sample->now.state == STATE_SLEEP && !file->has_class &&
	       filter_wants_work(file->filter) &&
	       filter_eval_thread(file->filter, sample, ~UINT64_C(0)) == VERDICT_ACCEPTED;
}

/* Adds the row's sample to a list; before that, a full list's batch is given. 0 or -errno. */
static int sample_add(struct sample_file *file, struct sample_list *to, const struct sample *sample)
{
	int err = 0;

	if (to->count >= SCAN_BATCH && file->source.take)
		err = batch_give(file);
	to->samples = memory_grow(to->samples, &to->capacity, to->count + 1, sizeof(*sample));
	to->samples[to->count] = *sample;
	if (sample->proc_values) {
		to->samples[to->count].proc_values = proc_values_pool_take(&file->proc_values);
		*to->samples[to->count].proc_values = file->row.next.proc_values;
	}
	to->count++;
	return err;
}

static int row_refuse(struct sample_file *file, const struct sample *sample)
{
	file->unclassed += is_unclassed(file, sample);
	return file->source.keeps_refused ? sample_add(file, &file->refused, sample) : 0;
}

static int scan_add(struct sample_file *file)
{
	struct sample *sample = &file->row.next.sample;
	enum verdict verdict;

	if (++file->rows > (file->source.take ? SCAN_ROWS_MAX : SCAN_ROWS_GATHERED_MAX)) {
		file->rows_beyond++;
		return 0;
	}
	if (sample->scan.weight_us == ABSENT)
		sample->scan.weight_us = file->weight_us;
	seen_note(file, sample);
	verdict = filter_eval(file->filter, sample,
			      ~(NEEDS_DERIVED | (file->stacks ? NEEDS_STACKS : 0)));
	if (verdict == VERDICT_REFUSED)
		return row_refuse(file, sample);
	if (file->stacks) {
		stack_dict_fill(file->stacks, sample);
		sample->scan.alike = 0; /* later the dictionary may have more */
	}
	sample_derive(sample, file->needs);
	if (verdict == VERDICT_OPEN && !filter_accepts(file->filter, sample))
		return row_refuse(file, sample);
	return sample_add(file, &file->taken, sample);
}

/* Returns the next scan. A signal may end a call in the middle of a scan; the next call goes on
 * with it. */
static int sample_file_next(struct source *source, struct scan *scan, struct error *e)
{
	struct sample_file *file = (struct sample_file *)source;
	int more = 1, err;

	for (;;) {
		if (!file->next_read) {
			more = row_next(file, e);
			if (more < 0)
				return more;
		}
		file->next_read = more > 0;
		if (file->scan_rows && file->time_us == ABSENT) {
			err = scan_rows_find(file->scan_rows, &file->part,
					     more ? file->row.next.sample.scan.time_us : INT64_MAX,
					     &file->scan_now, scan, e);
			if (err > 0) {
				scan_place(file, scan->time_us, scan->weight_us,
					   scan->clock_step_us);
				scan->clock_step_us = file->clock_step_us;
			}
			if (err)
				return err;
		}
		if (!more && file->time_us == ABSENT)
			return 0;
		if (!more || (file->time_us != ABSENT &&
			      file->row.next.sample.scan.time_us != file->time_us))
			break;
		if (file->time_us == ABSENT)
			scan_start(file);
		err = scan_add(file);
		if (err)
			return err;
		file->next_read = false;
	}
	*scan = scan_gathered(file);
	file->time_us = ABSENT;
	return 1;
}

static void sample_file_describe(struct source *source, struct source_status *status)
{
	const struct sample_file *file = (const struct sample_file *)source;
	struct source_missed *missed;

	*status = (struct source_status){
		.cpus = ABSENT,
		.rate_hz = ABSENT,
		.own_cpu_ns = ABSENT,
		.bpf_ns = ABSENT,
		.busy_us = ABSENT,
		.bpf_runs = ABSENT,
		.load = ABSENT,
		.memory_used = ABSENT,
		.disk_read = ABSENT,
		.refaulted = ABSENT,
		.evicted = ABSENT,
	};
	source_status_miss_any(status, "row cut off at the end of the recording", file->reader.cut);
	if (file->stacks)
		stack_dict_describe(file->stacks, status);
	source_status_miss_any(status, "rows dropped: more in one scan than tsnap reads",
			       file->rows_beyond);
	source_status_miss_any(status, "names did not fit tsnap's table", names_refused());
	missed = source_status_miss_any(
		status,
		"samples of threads in S that may have worked: not in the recording: why "
		"(record it with -G why)",
		file->unclassed);
	if (missed)
		missed->natural = true;
	if (file->scan_rows)
		scan_rows_describe(file->scan_rows, status);
	source_status_miss_any(status, "rows of the recording can't be read", file->rows_bad);
	file->input->describe(file->input, status);
}

static void sample_file_close(struct source *source)
{
	struct sample_file *file = (struct sample_file *)source;

	csv_done(&file->reader);
	text_done(&file->row.texts.scratch);
	row_cache_free(file->row.cache);
	free(file->taken.samples);
	free(file->refused.samples);
	free(file->seen);
	free(file->before);
	index_clear(&file->by_tid);
	free(file->recorded);
	proc_values_pool_done(&file->proc_values);
	stack_dict_free(file->stacks);
	scan_rows_free(file->scan_rows);
	file->input->close(file->input);
	free(file);
}

/* Reads the first row of a scan. If there is none, scans are derived from samples. */
static int scan_rows_begin(struct sample_file *file, struct error *e)
{
	int more = file->scan_rows ? scan_rows_peek(file->scan_rows, &file->part, e) : 1;

	if (!more) {
		scan_rows_free(file->scan_rows);
		file->scan_rows = NULL;
	}
	return more < 0 ? more : 0;
}

static int empty_fail(const struct sample_file *file, struct error *e)
{
	bool whole = recording_part_whole(&file->part);

	if (file->input->lenient || !whole)
		return error_set(e, ENODATA, EXIT_FAILED,
				 whole ? "%s: it contains no samples"
				       : "%s: nothing was recorded in that time",
				 file->reader.name);
	return error_set(e, EINVAL, EXIT_FAILED, "%s: empty: not a CSV that tsnap --csv wrote",
			 file->reader.name);
}

/* Reads the first row. A part of a recording without a row is most often a mistake. */
static int first_read(struct sample_file *file, struct error *e)
{
	int more = row_next(file, e);

	file->next_read = more > 0;
	if (more)
		return more < 0 ? more : 0;
	return empty_fail(file, e);
}

int sample_file_open(struct sample_input *input, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e)
{
	struct sample_file *file = memory_get(sizeof(*file));
	int err = 0;

	file->source = (struct source){.next = sample_file_next,
				       .describe = sample_file_describe,
				       .lacks = sample_file_lacks,
				       .close = sample_file_close};
	file->recorded = memory_get(sample_column_count * sizeof(*file->recorded));
	names_keep_all();
	file->input = input;
	file->part = input->part;
	file->filter = filter;
	file->needs = needs | filter_needs(filter);
	file->reader = (struct csv_reader){.fd = -1, .input = input->samples, .name = input->name};
	file->row.reader = &file->reader;
	file->row.needs = file->needs;
	file->time_us = file->scan_now.time_us = file->previous_us = ABSENT;
	if (input->bytes >= AHEAD_BYTES)
		csv_read_ahead(&file->reader);
	if (input->scans)
		file->scan_rows = scan_rows_new(input->scans, input->name);
	if (input->stacks && file->needs & NEEDS_STACKS)
		err = stack_dict_open_input(input->stacks, input->name, file->needs, &file->stacks,
					    e);
	if (!err)
		err = scan_rows_begin(file, e);
	if (!err)
		err = csv_read(&file->reader, file->row.fields, &file->row.count, e);
	/* scans that saw no thread have no samples */
	if (err == 0 && !file->scan_rows)
		err = empty_fail(file, e);
	if (err == 1)
		err = header_read(file, e);
	if (!err && !file->scan_rows && !recording_part_whole(&file->part))
		err = first_read(file, e);
	if (err)
		sample_file_close(&file->source);
	else
		*source = &file->source;
	return err;
}

int sample_file_stacks(struct source *source, const char *path, struct error *e)
{
	struct sample_file *file = (struct sample_file *)source;

	stack_dict_free(file->stacks);
	file->stacks = NULL;
	return stack_dict_open(path, file->needs, &file->stacks, e);
}
