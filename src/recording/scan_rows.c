/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/scan_rows.h"
#include "base/memory.h"
#include "recording/struct_rows.h"
#include "report/value.h"
#include "sample/sample.h"

#include <stdlib.h>

static const struct row_column columns[] = {
	{"timestamp", ROW_TIME, offsetof(struct scan_row, time_us)},
	{"weight_us", ROW_COUNT, offsetof(struct scan_row, weight_us)},
	{"samples", ROW_COUNT, offsetof(struct scan_row, samples)},
	{"threads", ROW_COUNT, offsetof(struct scan_row, threads)},
	{"missing", ROW_COUNT, offsetof(struct scan_row, missing)},
	{"clock_step_us", ROW_NUMBER, offsetof(struct scan_row, clock_step_us)},
};

#define THREADS_MAX (1 << 22) /* most thread ids that the kernel gives: PID_MAX_LIMIT */

static bool row_complete(const void *at)
{
	const struct scan_row *row = at;

	return row->time_us != ABSENT && row->samples != ABSENT &&
	       row->weight_us <= CSV_WEIGHT_MAX_US && row->threads <= THREADS_MAX;
}

static const struct scan_row blank = {
	.time_us = ABSENT, .samples = ABSENT, .clock_step_us = ABSENT};

static const struct row_kind kind = {.columns = columns,
				     .count = sizeof(columns) / sizeof(columns[0]),
				     .blank = &blank,
				     .size = sizeof(blank),
				     .complete = row_complete};

struct scan_rows {
	struct struct_rows rows;
	struct scan_row ahead; /* next row, read ahead; time_us is ABSENT: none */
	int64_t missing;       /* scans that were not recorded */
	uint64_t lost;	       /* scans whose samples are lost */
};

struct scan_rows *scan_rows_new(struct csv_input *input, const char *name)
{
	struct scan_rows *rows = memory_get(sizeof(*rows));

	rows->rows.kind = &kind;
	rows->rows.reader = (struct csv_reader){.fd = -1, .input = input, .name = name};
	rows->ahead.time_us = ABSENT;
	return rows;
}

void scan_rows_free(struct scan_rows *rows)
{
	if (!rows)
		return;
	struct_rows_done(&rows->rows);
	free(rows);
}

int scan_rows_peek(struct scan_rows *rows, struct recording_part *part, struct error *e)
{
	while (rows->ahead.time_us == ABSENT) {
		struct scan_row row;
		int more = struct_rows_read(&rows->rows, &row, e);

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
	source_status_miss_any(status, "rows of scans can't be read", rows->rows.bad);
}

void scan_row_add(struct text *text, const struct scan_row *row)
{
	struct_row_add(text, &kind, row);
}
