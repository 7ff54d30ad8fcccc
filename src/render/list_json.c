/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --list --json: columns and what else --list has, an object each. */
#include "render/render_rows.h"
#include "report/column_list.h"
#include "report/measure.h"
#include "sample/column.h"
#include "sample/needs_table.h"
#include "sample/trace_kind.h"

#include <string.h>

/* Types of values in CSV and JSON. */
static const char *const kind_names[] = {
	[KIND_TEXT] = "text",		[KIND_NUMBER] = "integer",   [KIND_HEX] = "hex",
	[KIND_TIME] = "time",		[KIND_STATE] = "text",	     [KIND_HUNDREDTHS] = "decimal",
	[KIND_THOUSANDTHS] = "decimal", [KIND_PERMILLE] = "decimal", [KIND_NS] = "integer",
	[KIND_THREADS] = "decimal",
};

/* Roles of columns: what a report shows of a group. */
static const char *const role_names[] = {
	[ROLE_KEY] = "key",
	[ROLE_SUM] = "sum",
	[ROLE_MAX] = "max",
	[ROLE_MEASURE] = "measure",
};

/* Adds a member; NULL is written as null. */
static void member_add(struct text *out, const char *name, const char *words)
{
	text_add_format(out, ",\"%s\":%s", name, words ? "" : "null");
	if (words)
		json_add_text(out, "", words);
}

static void flag_add(struct text *out, const char *name, bool set)
{
	text_add_format(out, ",\"%s\":%s", name, set ? "true" : "false");
}

static void column_add(struct text *out, const struct column *column, const char *section)
{
	struct text shown = {0};

	column_add_default(&shown, column);
	text_add_string(out, "{\"list\":\"column\"");
	member_add(out, "name", column->name);
	member_add(out, "section", section);
	member_add(out, "type", kind_names[column->kind]);
	member_add(out, "in_report", role_names[column->role]);
	flag_add(out, "report_default", strchr(text_string(&shown), 'r'));
	flag_add(out, "rows_default", strchr(text_string(&shown), 'c'));
	member_add(out, "needs",
		   column->role == ROLE_MEASURE ? NULL : needs_dearest(column->needs)->name);
	member_add(out, "help", column->help);
	text_add_string(out, "}\n");
	text_done(&shown);
}

static void columns_add(struct text *out)
{
	size_t next = 0;

	for (size_t i = 0; i < sample_column_count; i++) {
		if (next < column_section_count &&
		    !strcmp(column_sections[next].first, sample_columns[i].name))
			next++;
		column_add(out, &sample_columns[i], next ? column_sections[next - 1].name : NULL);
	}
	for (size_t i = 0; i < measure_column_count; i++)
		column_add(out, &measure_columns[i], NULL);
}

/* Adds an object with a name and one more member. */
static void pair_add(struct text *out, const char *list, const char *name, const char *member,
		     const char *words)
{
	text_add_format(out, "{\"list\":\"%s\"", list);
	member_add(out, "name", name);
	member_add(out, member, words);
	text_add_string(out, "}\n");
}

void list_json_add(struct text *out, const struct trace_kind *const *kinds, size_t kind_count)
{
	columns_add(out);
	for (size_t i = 0; i < column_set_count; i++)
		pair_add(out, "set", column_sets[i].name, "columns", column_sets[i].columns);
	for (int64_t i = 0; i < STATE_COUNT; i++)
		pair_add(out, "state", state_row(i)->name, "help", state_row(i)->help);
	for (size_t i = 0; i < kind_count; i++)
		pair_add(out, "trace", kinds[i]->name, "help", kinds[i]->help);
}
