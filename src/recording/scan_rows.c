/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/scan_rows.h"
#include "base/clock.h"
#include "base/memory.h"
#include "recording/csv_value.h"
#include "sample/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset;
} columns[] = {
	{"timestamp", offsetof(struct scan_row, time_us)},
	{"weight_us", offsetof(struct scan_row, weight_us)},
	{"samples", offsetof(struct scan_row, samples)},
	{"threads", offsetof(struct scan_row, threads)},
	{"missing", offsetof(struct scan_row, missing)},
};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

struct scan_rows {
	struct csv_reader reader;
	struct csv_field fields[CSV_FIELDS_MAX];
	int column_of[CSV_FIELDS_MAX]; /* index into columns[], -1: not known */
	size_t count;		       /* fields of a row; 0: no heading yet */
	uint64_t bad;
};

struct scan_rows *scan_rows_new(struct csv_input *input, const char *name)
{
	struct scan_rows *rows = memory_get(sizeof(*rows));

	rows->reader = (struct csv_reader){.fd = -1, .input = input, .name = name};
	return rows;
}

void scan_rows_free(struct scan_rows *rows)
{
	if (!rows)
		return;
	csv_done(&rows->reader);
	free(rows);
}

uint64_t scan_rows_bad(const struct scan_rows *rows)
{
	return rows->bad;
}

static void heading_read(struct scan_rows *rows, size_t count)
{
	rows->count = count;
	for (size_t i = 0; i < count; i++) {
		rows->column_of[i] = -1;
		for (size_t j = 0; j < COLUMN_COUNT; j++)
			if (!strcmp(rows->fields[i].text, columns[j].name))
				rows->column_of[i] = (int)j;
	}
}

static bool row_read(const struct scan_rows *rows, struct scan_row *row)
{
	*row = (struct scan_row){.time_us = ABSENT, .samples = ABSENT};
	for (size_t i = 0; i < rows->count; i++) {
		const char *text = rows->fields[i].text;
		int column = rows->column_of[i];
		int64_t number;

		if (column < 0 || !*text)
			continue;
		if (column ? csv_number_read(text, &number) || number < 0
			   : clock_parse_iso(text, &number))
			return false;
		memcpy((char *)row + columns[column].offset, &number, sizeof(number));
	}
	return row->time_us != ABSENT && row->samples != ABSENT &&
	       row->weight_us <= CSV_WEIGHT_MAX_US;
}

int scan_rows_next(struct scan_rows *rows, struct scan_row *row, struct error *e)
{
	for (;;) {
		size_t count = 0;
		int more = csv_read(&rows->reader, rows->fields, &count, e);

		if (more == -EINVAL) {
			error_done(e);
			rows->bad++;
			continue;
		}
		if (more <= 0)
			return more;
		/* times of rows are quoted */
		if (!strcmp(rows->fields[0].text, columns[0].name) && !rows->fields[0].quoted)
			heading_read(rows, count);
		else if (count == rows->count && row_read(rows, row))
			return 1;
		else
			rows->bad++;
	}
}

void scan_row_add(struct text *text, const struct scan_row *row)
{
	char time[CLOCK_ISO_SIZE];

	clock_format_iso(row->time_us, time);
	text_add_format(text, "\"%s\",%lld,%lld,%lld,%lld\n", time, (long long)row->weight_us,
			(long long)row->samples, (long long)row->threads, (long long)row->missing);
}
