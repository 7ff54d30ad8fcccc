/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/scan_rows.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "base/memory.h"
#include "recording/csv_reader.h"
#include "report/value.h"
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
	{"clock_step_us", offsetof(struct scan_row, clock_step_us)},
};

#define THREADS_MAX (1 << 22) /* most thread ids that the kernel gives: PID_MAX_LIMIT */
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

struct scan_rows {
	struct csv_reader reader;
	struct csv_field fields[CSV_FIELDS_MAX];
	int column_of[CSV_FIELDS_MAX]; /* index into columns[], -1: not known */
	size_t count;		       /* fields of a row; 0: no header line yet */
	struct scan_row ahead;	       /* next row, read ahead; time_us is ABSENT: none */
	uint64_t bad;		       /* rows that can't be read */
	int64_t missing;	       /* scans that were not recorded */
	uint64_t lost;		       /* scans whose samples are lost */
};

struct scan_rows *scan_rows_new(struct csv_input *input, const char *name)
{
	struct scan_rows *rows = memory_get(sizeof(*rows));

	rows->reader = (struct csv_reader){.fd = -1, .input = input, .name = name};
	rows->ahead.time_us = ABSENT;
	return rows;
}

void scan_rows_free(struct scan_rows *rows)
{
	if (!rows)
		return;
	csv_done(&rows->reader);
	free(rows);
}

static void header_read(struct scan_rows *rows, size_t count)
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
	*row = (struct scan_row){.time_us = ABSENT, .samples = ABSENT, .clock_step_us = ABSENT};
	for (size_t i = 0; i < rows->count; i++) {
		const char *text = rows->fields[i].text;
		int column = rows->column_of[i];
		int64_t number;

		if (column < 0 || !*text)
			continue;
		if (column ? csv_number_read(text, &number) : time_iso_read(text, &number))
			return false;
		if (number < 0 && column && strcmp(columns[column].name, "clock_step_us"))
			return false;
		memcpy((char *)row + columns[column].offset, &number, sizeof(number));
	}
	return row->time_us != ABSENT && row->samples != ABSENT &&
	       row->weight_us <= CSV_WEIGHT_MAX_US && row->threads <= THREADS_MAX;
}

/* Reads a row. 1: *row is filled, 0: the end, or -errno. */
static int row_next(struct scan_rows *rows, struct scan_row *row, struct error *e)
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
		/* the time of a row is quoted, the name in a header line is not */
		if (!strcmp(rows->fields[0].text, columns[0].name) && !rows->fields[0].quoted)
			header_read(rows, count);
		else if (count == rows->count && row_read(rows, row))
			return 1;
		else
			rows->bad++;
	}
}

int scan_rows_peek(struct scan_rows *rows, struct recording_part *part, struct error *e)
{
	while (rows->ahead.time_us == ABSENT) {
		struct scan_row row;
		int more = row_next(rows, &row, e);

		if (more <= 0)
			return more;
		recording_part_date(part, row.time_us);
		if (recording_part_has(part, row.time_us))
			rows->ahead = row;
	}
	return 1;
}

int scan_rows_find(struct scan_rows *rows, struct recording_part *part, int64_t sample_us,
		   struct scan_row *now, struct scan *scan, struct error *e)
{
	int more;

	now->time_us = ABSENT;
	while ((more = scan_rows_peek(rows, part, e)) > 0) {
		const struct scan_row row = rows->ahead;

		if (row.samples && row.time_us > sample_us)
			return 0; /* the sample's own row is lost */
		rows->ahead.time_us = ABSENT;
		rows->missing = sum(rows->missing, row.missing);
		if (!row.samples) {
			*scan = (struct scan){.time_us = row.time_us,
					      .weight_us = row.weight_us,
					      .clock_step_us = row.clock_step_us,
					      .threads = (size_t)row.threads};
			return 1;
		}
		if (row.time_us == sample_us) {
			*now = row;
			return 0;
		}
		rows->lost++;
	}
	return more;
}

void scan_rows_describe(const struct scan_rows *rows, struct source_status *status)
{
	source_status_miss_any(status, "scans not recorded", (uint64_t)rows->missing);
	source_status_miss_any(status, "scans whose samples are lost", rows->lost);
	source_status_miss_any(status, "rows of scans can't be read", rows->bad);
}

void scan_row_add(struct text *text, const struct scan_row *row)
{
	char time[CLOCK_ISO_SIZE];

	clock_format_iso(row->time_us, time);
	text_add_format(text, "\"%s\",%lld,%lld,%lld,%lld,%lld\n", time, (long long)row->weight_us,
			(long long)row->samples, (long long)row->threads, (long long)row->missing,
			(long long)row->clock_step_us);
}
