/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/struct_rows.h"
#include "base/clock.h"
#include "base/quantity.h"

#include <errno.h>
#include <string.h>

static void header_read(struct struct_rows *rows, size_t count)
{
	rows->count = count;
	for (size_t i = 0; i < count; i++) {
		rows->column_of[i] = -1;
		for (size_t j = 0; j < rows->kind->count; j++)
			if (!strcmp(rows->fields[i].text, rows->kind->columns[j].name))
				rows->column_of[i] = (int)j;
	}
}

static bool value_read(void *row, const struct row_column *column, const char *text)
{
	void *at = (char *)row + column->offset;

	switch (column->kind) {
	case ROW_TIME:
		return !time_iso_read(text, at);
	case ROW_COUNT:
		return !csv_number_read(text, at) && *(const int64_t *)at >= 0;
	case ROW_NUMBER:
		return !csv_number_read(text, at);
	case ROW_TEXT:
		break;
	}
	*(const char **)at = text;
	return true;
}

static bool row_read(const struct struct_rows *rows, void *row)
{
	memcpy(row, rows->kind->blank, rows->kind->size);
	for (size_t i = 0; i < rows->count; i++)
		if (rows->column_of[i] >= 0 && *rows->fields[i].text &&
		    !value_read(row, &rows->kind->columns[rows->column_of[i]],
				rows->fields[i].text))
			return false;
	return !rows->kind->complete || rows->kind->complete(row);
}

int struct_rows_read(struct struct_rows *rows, void *row, struct error *e)
{
	for (;;) {
		size_t count = 0;
		int more = csv_read(&rows->reader, rows->fields, &count, e);

		if (more == -EINVAL) {
			error_done(e);
			*e = (struct error){0};
			rows->bad++;
			continue;
		}
		if (more <= 0)
			return more;
		/* the time of a row is quoted, the name in a header line is not */
		if (!strcmp(rows->fields[0].text, rows->kind->columns[0].name) &&
		    !rows->fields[0].quoted)
			header_read(rows, count);
		else if (count == rows->count && row_read(rows, row))
			return 1;
		else
			rows->bad++;
	}
}

void struct_rows_done(struct struct_rows *rows)
{
	csv_done(&rows->reader);
}

void struct_row_add(struct text *text, const struct row_kind *kind, const void *row)
{
	for (size_t i = 0; i < kind->count; i++) {
		const void *at = (const char *)row + kind->columns[i].offset;
		char time[CLOCK_ISO_SIZE];

		if (i)
			text_add_char(text, ',');
		switch (kind->columns[i].kind) {
		case ROW_TIME:
			clock_format_iso(*(const int64_t *)at, time);
			text_add_format(text, "\"%s\"", time);
			break;
		case ROW_COUNT:
		case ROW_NUMBER:
			text_add_format(text, "%lld", (long long)*(const int64_t *)at);
			break;
		case ROW_TEXT:
			csv_text_add(text, *(const char *const *)at);
			break;
		}
	}
	text_add_char(text, '\n');
}
