/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A manual page in man(7) macros: prose, with the tables in place of lines that begin with @. */
#include "manual/manual.h"
#include "cli/option_table.h"
#include "report/column_list.h"
#include "report/measure.h"
#include "sample/needs_table.h"
#include "sample/wait_rule.h"
#include "live/trace_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_MARK "@option "
#define LINE_MOST 66 /* limit of a line, not counting escapes in its last word */

struct page_state {
	struct text *page;
	struct text details; /* contents of OPTIONS: more about each option */
};

/* Adds words escaped, so that no macro or escape begins in them; a space in a long line becomes a
 * line break. */
static void add_words(struct text *page, const char *words)
{
	size_t at = page->length;

	while (at && page->bytes[at - 1] != '\n')
		at--;
	for (; *words; words++) {
		if (*words == ' ' && page->length - at + strcspn(words + 1, " ") > LINE_MOST) {
			text_add_string(page, words[1] == '.' ? "\n\\&" : "\n");
			at = page->length;
			continue;
		}
		if (*words == '\\')
			text_add_string(page, "\\e");
		else if (*words == '-')
			text_add_string(page, "\\-");
		else if (*words == '\'')
			text_add_string(page, "\\(aq");
		else if (*words == '"')
			text_add_string(page, "\\(dq");
		else
			text_add_char(page, *words);
	}
}

/* Adds the words of a help text as a sentence: a capital first (unless it is a name), a full
 * stop. */
static void add_sentence(struct text *page, const char *words)
{
	struct text sentence = {0};

	text_add_string(&sentence, words);
	if (isalpha((unsigned char)words[0]) && words[1] != '/' && strncmp(words, "waitpid", 7))
		sentence.bytes[0] = (char)toupper((unsigned char)words[0]);
	text_add_char(&sentence, '.');
	add_words(page, text_string(&sentence));
	text_done(&sentence);
}

/* Adds an entry of a list: its name, and its help as a sentence; the line is left open. */
static void add_entry(struct text *page, const char *name, const char *help)
{
	text_add_string(page, ".TP\n.B ");
	add_words(page, name);
	text_add_char(page, '\n');
	add_sentence(page, help);
}

/* Adds the part of OPTIONS about the option, which ends where the next one begins. */
static void add_details(struct text *page, const char *details, const char *name)
{
	size_t length = strlen(name);
	const char *end;

	while ((details = strstr(details, OPTION_MARK))) {
		details += strlen(OPTION_MARK);
		end = strstr(details, OPTION_MARK);
		if (!strncmp(details, name, length) && details[length] == '\n') {
			details += length + 1;
			text_add(page, details, end ? (size_t)(end - details) : strlen(details));
			return;
		}
	}
}

static void add_option(struct page_state *state, const struct option_row *row)
{
	struct text *page = state->page;

	text_add_string(page, ".TP\n");
	if (row->letter)
		text_add_format(page, "\\fB\\-%c\\fR, ", row->letter);
	text_add_string(page, "\\fB\\-\\-");
	add_words(page, row->name);
	text_add_string(page, "\\fR");
	if (row->argument) {
		text_add_string(page, " \\fI");
		add_words(page, row->argument);
		text_add_string(page, "\\fR");
	}
	text_add_char(page, '\n');
	add_sentence(page, option_help(row));
	text_add_char(page, '\n');
	add_details(page, text_string(&state->details), row->name);
}

static void add_options(struct page_state *state)
{
	for (size_t i = 0; i < option_count; i++) {
		if (option_table[i].section)
			text_add_format(state->page, ".SS %s\n", option_table[i].section);
		add_option(state, &option_table[i]);
	}
}

/* Adds " (default in reports and rows; needs user)", as far as it applies. */
static void add_column_use(struct text *page, const struct column *column)
{
	uint64_t needs = column->role == ROLE_MEASURE ? 0 : column->needs;
	struct text use = {0};
	bool report, rows;

	column_add_default(&use, column);
	report = use.bytes[0] != '-';
	rows = use.bytes[1] != '-';
	text_clear(&use);
	if (report || rows)
		text_add_format(&use, "default in %s%s%s", report ? "reports" : "",
				report && rows ? " and " : "", rows ? "rows" : "");
	if (needs)
		text_add_format(&use, "%sneeds %s", use.length ? "; " : "",
				needs_dearest(needs)->name);
	if (use.length) {
		text_add_string(page, "\n(");
		add_words(page, text_string(&use));
		text_add_char(page, ')');
	}
	text_add_char(page, '\n');
	text_done(&use);
}

static void add_column(struct text *page, const struct column *column)
{
	struct text words = {0};

	column_add_help(&words, column);
	add_entry(page, column->name, text_string(&words));
	add_column_use(page, column);
	text_done(&words);
}

static void add_columns(struct page_state *state)
{
	size_t section = 0;

	for (size_t i = 0; i < sample_column_count; i++) {
		if (section < column_section_count &&
		    !strcmp(column_sections[section].first, sample_columns[i].name))
			text_add_format(state->page, ".SS %s\n", column_sections[section++].name);
		add_column(state->page, &sample_columns[i]);
	}
}

static void add_measures(struct page_state *state)
{
	for (size_t i = 0; i < measure_column_count; i++)
		add_column(state->page, &measure_columns[i]);
}

/* Adds names with commas between; a line may be broken after each comma. */
static void add_names(struct text *page, const char *names)
{
	struct text name = {0};

	for (const char *before = ""; text_next_name(&name, &names); before = ",\\:") {
		text_add_string(page, before);
		add_words(page, text_string(&name));
	}
	text_done(&name);
}

static void add_sets(struct page_state *state)
{
	text_add_string(state->page, ".na\n");
	for (size_t i = 0; i < column_set_count; i++) {
		text_add_format(state->page, ".TP\n.B %s\n", column_sets[i].name);
		add_names(state->page, column_sets[i].columns);
		text_add_char(state->page, '\n');
	}
	text_add_string(state->page, ".ad\n");
}

static void add_needs(struct page_state *state)
{
	for (size_t i = 0; i < needs_row_count; i++) {
		add_entry(state->page, needs_rows[i].name, needs_rows[i].help);
		text_add_format(state->page, " (%s)\n", needs_cost_names[needs_rows[i].cost]);
	}
}

static void add_states(struct page_state *state)
{
	for (int64_t i = 0; i < STATE_COUNT; i++) {
		add_entry(state->page, state_row(i)->name, state_row(i)->help);
		text_add_string(state->page, state_row(i)->active ? "\n"
					     : i == STATE_SLEEP
						     ? " (shown with \\-a, or where it is work)\n"
						     : " (shown with \\-a)\n");
	}
}

static void add_traces(struct page_state *state)
{
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t count = trace_kinds_list(~0u, kinds);

	for (size_t i = 0; i < count; i++) {
		const struct trace_kind *kind = kinds[i];

		add_entry(state->page, kind->name, kind->help);
		if (kind->columns) {
			text_add_string(state->page, "\nColumns: ");
			add_words(state->page, kind->columns);
			text_add_char(state->page, '.');
		}
		text_add_char(state->page, '\n');
	}
}

static void add_classes(struct page_state *state)
{
	for (size_t i = 0; i < wait_rule_count; i++) {
		if (wait_rule_find(wait_rules[i].name) != &wait_rules[i])
			continue;
		text_add_format(state->page, ".TP\n\\fB%s\\fR (%s)\nWaits ", wait_rules[i].name,
				wait_rules[i].traits & WAIT_WORKS ? "work" : "idle");
		add_words(state->page, wait_rules[i].help);
		text_add_string(state->page, ".\n");
	}
}

static const struct page_table {
	const char *name;
	void (*add)(struct page_state *state);
} page_tables[] = {
	{"@options\n", add_options}, {"@columns\n", add_columns}, {"@measures\n", add_measures},
	{"@sets\n", add_sets},	     {"@needs\n", add_needs},	  {"@states\n", add_states},
	{"@traces\n", add_traces},   {"@classes\n", add_classes},
};

static int add_table(struct page_state *state, const char *line, struct error *e)
{
	for (size_t i = 0; i < sizeof(page_tables) / sizeof(page_tables[0]); i++)
		if (!strcmp(page_tables[i].name, line)) {
			page_tables[i].add(state);
			return 0;
		}
	return error_set(e, EINVAL, EXIT_FAILED, "no table is named %s", line);
}

static void add_line(struct text *page, const char *line)
{
	static const char mark[] = "@version";
	const char *at = strstr(line, mark);

	if (at) {
		text_add(page, line, (size_t)(at - line));
		text_add_string(page, TSNAP_VERSION);
		line = at + strlen(mark);
	}
	text_add_string(page, line);
}

static int file_read(struct text *text, const char *path, struct error *e)
{
	FILE *file = fopen(path, "r");
	char bytes[4096];
	size_t length;

	if (!file)
		return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	while ((length = fread(bytes, 1, sizeof(bytes), file)))
		text_add(text, bytes, length);
	fclose(file);
	return 0;
}

static int details_check(const char *details, struct error *e)
{
	while ((details = strstr(details, OPTION_MARK))) {
		size_t i = 0, length;

		details += strlen(OPTION_MARK);
		length = strcspn(details, "\n");
		while (i < option_count && (strlen(option_table[i].name) != length ||
					    strncmp(option_table[i].name, details, length)))
			i++;
		if (i == option_count)
			return error_set(e, EINVAL, EXIT_FAILED, "there is no option --%.*s",
					 (int)length, details);
	}
	return 0;
}

int manual_page_add(struct text *page, const char *prose, const char *options, struct error *e)
{
	struct page_state state = {.page = page};
	struct text lines = {0}, line = {0};
	int err = file_read(&lines, prose, e);

	if (!err)
		err = file_read(&state.details, options, e);
	if (!err)
		err = details_check(text_string(&state.details), e);
	for (const char *at = text_string(&lines); !err && *at;) {
		size_t length = strcspn(at, "\n");

		length += at[length] == '\n';
		text_clear(&line);
		text_add(&line, at, length);
		if (*at == '@')
			err = add_table(&state, text_string(&line), e);
		else
			add_line(page, text_string(&line));
		at += length;
	}
	text_done(&state.details);
	text_done(&lines);
	text_done(&line);
	return err;
}
