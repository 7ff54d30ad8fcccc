/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/sample_row.h"
#include "recording/csv_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int sample_row_fail(const struct sample_row *row, struct error *e, const char *column,
		    const char *what)
{
	return error_set(e, EINVAL, EXIT_FAILED, "%s: line %llu: %s%s%s", row->reader->name,
			 (unsigned long long)row->reader->line, column, *column ? ": " : "", what);
}

int sample_row_header(struct sample_row *row, struct error *e)
{
	const struct column **columns = row->columns;
	bool timed = false;

	row->fresh = true;
	row->header_count = row->count;
	row->cell_count = 0;
	for (size_t i = 0; i < row->count; i++) {
		const struct column *column = sample_column_find(row->fields[i].text);

		for (size_t j = 0; column && j < i; j++)
			if (columns[j] == column)
				return sample_row_fail(row, e, column->name, "two such columns");
		columns[i] = column;
		if (column && column->offset == offsetof(struct sample, scan.time_us)) {
			row->time_field = i;
			timed = true;
		}
		if (column && (!column->needs || column->needs & row->needs))
			row->cells[row->cell_count++] = (struct row_cell){column, i};
	}
	if (!timed)
		return sample_row_fail(
			row, e, "",
			"no header line with a timestamp: not a CSV that tsnap --csv wrote");
	return 0;
}

bool sample_row_is_header(const struct sample_row *row)
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
		if (clock_parse_iso(field->text, &row->time_value))
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
		value->text = csv_texts_read(&row->texts, field, &row->scratch);
		return NULL;
	case KIND_HEX:
		return csv_hex_read(field->text, &value->number) ? "not a 0x number" : NULL;
	case KIND_TIME:
		return time_read(row, field, &value->number) ? "not a time of tsnap" : NULL;
	case KIND_STATE:
		value->number = state_of_name(field->text);
		return value->number == ABSENT ? "not a state" : NULL;
	default:
		return csv_digits_read(field->text, field->length, &value->number) ? "not a number"
										   : NULL;
	}
}

/* Clears everything that the columns of the header line will not write. */
static void next_clear(struct sample_row *row)
{
	row->next.sample.scan.weight_us = ABSENT;
	if (!row->fresh && !row->changed)
		return;
	row->fresh = false;
	row->next.sample = *sample_absent();
	if (row->needs & NEEDS_PROC_VALUES) {
		row->next.proc_values = *proc_values_absent();
		row->next.sample.proc_values = &row->next.proc_values;
	}
}

int sample_row_read(struct sample_row *row, struct error *e)
{
	if (row->count != row->header_count)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "%s: line %llu: %zu columns where the header line has %zu",
				 row->reader->name, (unsigned long long)row->reader->line,
				 row->count, row->header_count);
	next_clear(row);
	for (size_t i = 0; i < row->cell_count; i++) {
		const struct column *column = row->cells[i].column;
		const struct csv_field *field = &row->fields[row->cells[i].field];
		union value value;
		const char *wrong = NULL;

		if (field->length || field->quoted)
			wrong = value_read(row, column, field, &value);
		else if (column->kind == KIND_TEXT)
			value.text = NULL;
		else
			value.number = ABSENT;
		if (wrong)
			return sample_row_fail(row, e, column->name, wrong);
		column_set(column, &row->next, value);
	}
	if (row->next.sample.scan.time_us == ABSENT)
		return sample_row_fail(row, e, "timestamp", "missing");
	if (row->next.sample.scan.weight_us != ABSENT &&
	    (row->next.sample.scan.weight_us < 0 ||
	     row->next.sample.scan.weight_us > CSV_WEIGHT_MAX_US))
		return sample_row_fail(row, e, "weight_us", "out of range");
	return 0;
}

void sample_row_copy(const struct sample_row *row, struct sample *to, bool again)
{
	if (!again || row->changed) {
		*to = row->next.sample;
		return;
	}
	to->scan.weight_us = row->next.sample.scan.weight_us;
	for (size_t i = 0; i < row->cell_count; i++) {
		const struct column *column = row->cells[i].column;

		if (!column_is_proc_value(column))
			column_set(column, to, column_read(column, &row->next));
	}
}

void sample_row_done(struct sample_row *row)
{
	text_done(&row->scratch);
}
