/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/finding_rows.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/quantity.h"
#include "sample/sample.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum value_kind { VALUE_TIME, VALUE_NUMBER, VALUE_TEXT };

static const struct {
	const char *name;
	enum value_kind kind;
	size_t offset;
} columns[] = {
	{"timestamp", VALUE_TIME, offsetof(struct finding_entry, end_us)},
	{"begin", VALUE_TIME, offsetof(struct finding_entry, begin_us)},
	{"rank", VALUE_NUMBER, offsetof(struct finding_entry, rank)},
	{"finding", VALUE_TEXT, offsetof(struct finding_entry, finding)},
	{"certainty", VALUE_TEXT, offsetof(struct finding_entry, certainty)},
	{"time_us", VALUE_NUMBER, offsetof(struct finding_entry, time_us)},
	{"longest_us", VALUE_NUMBER, offsetof(struct finding_entry, longest_us)},
	{"culprit", VALUE_TEXT, offsetof(struct finding_entry, culprit)},
	{"thing", VALUE_TEXT, offsetof(struct finding_entry, thing)},
	{"text", VALUE_TEXT, offsetof(struct finding_entry, text)},
};

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

struct finding_rows {
	struct csv_reader reader;
	struct csv_field fields[CSV_FIELDS_MAX];
	int column_of[CSV_FIELDS_MAX]; /* index into columns[], -1: not known */
	size_t count;		       /* fields of a row; 0: no header line yet */
};

void finding_row_add(struct text *rows, const struct finding_entry *entry)
{
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		const void *at = (const char *)entry + columns[i].offset;
		char time[CLOCK_ISO_SIZE];

		if (i)
			text_add_char(rows, ',');
		switch (columns[i].kind) {
		case VALUE_TIME:
			clock_format_iso(*(const int64_t *)at, time);
			text_add_format(rows, "\"%s\"", time);
			break;
		case VALUE_NUMBER:
			text_add_format(rows, "%lld", (long long)*(const int64_t *)at);
			break;
		case VALUE_TEXT:
			csv_text_add(rows, *(const char *const *)at);
			break;
		}
	}
	text_add_char(rows, '\n');
}

static void header_read(struct finding_rows *rows, size_t count)
{
	rows->count = count;
	for (size_t i = 0; i < count; i++) {
		rows->column_of[i] = -1;
		for (size_t j = 0; j < COLUMN_COUNT; j++)
			if (!strcmp(rows->fields[i].text, columns[j].name))
				rows->column_of[i] = (int)j;
	}
}

static bool value_read(struct finding_entry *entry, int column, const char *text)
{
	void *at = (char *)entry + columns[column].offset;

	if (columns[column].kind == VALUE_TEXT) {
		*(const char **)at = text;
		return true;
	}
	return columns[column].kind == VALUE_TIME ? !time_iso_read(text, at)
						  : !csv_number_read(text, at);
}

static bool row_read(const struct finding_rows *rows, struct finding_entry *entry)
{
	*entry = (struct finding_entry){.begin_us = ABSENT,
					.end_us = ABSENT,
					.finding = "",
					.certainty = "",
					.culprit = "",
					.thing = "",
					.text = ""};
	for (size_t i = 0; i < rows->count; i++)
		if (rows->column_of[i] >= 0 && *rows->fields[i].text &&
		    !value_read(entry, rows->column_of[i], rows->fields[i].text))
			return false;
	return entry->begin_us != ABSENT && entry->end_us != ABSENT && entry->rank >= 0;
}

int finding_rows_read(struct csv_input *input, const char *name, finding_callback *take, void *to,
		      struct error *e)
{
	struct finding_rows *rows = memory_get(sizeof(*rows));
	int more;

	rows->reader = (struct csv_reader){.fd = -1, .input = input, .name = name};
	for (;;) {
		struct finding_entry entry;
		size_t count = 0;

		more = csv_read(&rows->reader, rows->fields, &count, e);
		if (more == -EINVAL) {
			error_done(e);
			*e = (struct error){0};
			continue;
		}
		if (more <= 0)
			break;
		/* the time of a row is quoted, the name in a header line is not */
		if (!strcmp(rows->fields[0].text, columns[0].name) && !rows->fields[0].quoted)
			header_read(rows, count);
		else if (count == rows->count && row_read(rows, &entry))
			take(to, &entry);
	}
	csv_done(&rows->reader);
	free(rows);
	return more;
}
