/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/finding_rows.h"
#include "base/memory.h"
#include "recording/struct_rows.h"
#include "sample/sample.h"

#include <stdlib.h>

static const struct row_column columns[] = {
	{"timestamp", ROW_TIME, offsetof(struct finding_entry, end_us)},
	{"begin", ROW_TIME, offsetof(struct finding_entry, begin_us)},
	{"rank", ROW_COUNT, offsetof(struct finding_entry, rank)},
	{"finding", ROW_TEXT, offsetof(struct finding_entry, finding)},
	{"certainty", ROW_TEXT, offsetof(struct finding_entry, certainty)},
	{"time_us", ROW_NUMBER, offsetof(struct finding_entry, time_us)},
	{"longest_us", ROW_NUMBER, offsetof(struct finding_entry, longest_us)},
	{"culprit", ROW_TEXT, offsetof(struct finding_entry, culprit)},
	{"pid", ROW_COUNT, offsetof(struct finding_entry, pid)},
	{"thing", ROW_TEXT, offsetof(struct finding_entry, thing)},
	{"text", ROW_TEXT, offsetof(struct finding_entry, text)},
};

static bool entry_complete(const void *row)
{
	const struct finding_entry *entry = row;

	return entry->begin_us != ABSENT && entry->end_us != ABSENT;
}

static const struct finding_entry blank = {.begin_us = ABSENT,
					   .end_us = ABSENT,
					   .finding = "",
					   .certainty = "",
					   .culprit = "",
					   .thing = "",
					   .text = ""};

static const struct row_kind kind = {.columns = columns,
				     .count = sizeof(columns) / sizeof(columns[0]),
				     .blank = &blank,
				     .size = sizeof(blank),
				     .complete = entry_complete};

void finding_row_add(struct text *rows, const struct finding_entry *entry)
{
	struct_row_add(rows, &kind, entry);
}

int finding_rows_read(struct csv_input *input, const char *name, finding_callback *take, void *to,
		      struct error *e)
{
	struct struct_rows *rows = memory_get(sizeof(*rows));
	struct finding_entry entry;
	int more;

	rows->kind = &kind;
	rows->reader = (struct csv_reader){.fd = -1, .input = input, .name = name};
	while ((more = struct_rows_read(rows, &entry, e)) > 0)
		take(to, &entry);
	struct_rows_done(rows);
	free(rows);
	return more;
}
