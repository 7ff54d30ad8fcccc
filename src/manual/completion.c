/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion of tsnap's options and of their arguments, for three shells. The kind of an argument
 * follows from how --help writes it. */
#include "manual/manual.h"
#include "cli/option_table.h"
#include "kernel/type_source.h"
#include "report/column_list.h"
#include "report/measure.h"
#include "live/trace_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum argument_kind {
	ARGUMENT_OTHER, /* numbers and patterns: no completions */
	ARGUMENT_FILE,
	ARGUMENT_USER,
	ARGUMENT_COLUMNS,
	ARGUMENT_TRACES,
	ARGUMENT_WORDS,
};

static void add_sources(struct text *script)
{
	type_source_names_add(script, " ", " ");
}

static void add_sample_sources(struct text *script)
{
	text_add_string(script, SOURCE_BPF " " SOURCE_PROC);
}

static void add_all(struct text *script)
{
	text_add_string(script, "all");
}

/* clang-format off */
static const struct argument_row {
	const char *argument; /* argument of option_row */
	enum argument_kind kind;
	/* adds the words of ARGUMENT_WORDS with spaces between, else NULL */
	void (*add_words)(struct text *script);
} argument_rows[] = {
	{"FILE",	ARGUMENT_FILE,		NULL},
	{"A B",		ARGUMENT_FILE,		NULL},
	{"FILE|DIR...",	ARGUMENT_FILE,		NULL},
	{"DIR",		ARGUMENT_FILE,		NULL},
	{"USER",	ARGUMENT_USER,		NULL},
	{"COLUMN,...",	ARGUMENT_COLUMNS,	NULL},
	{"COLUMN",	ARGUMENT_COLUMNS,	NULL},
	{"KEY,...",	ARGUMENT_COLUMNS,	NULL},
	{"KIND,...",	ARGUMENT_TRACES,	NULL},
	{"SOURCE",	ARGUMENT_WORDS,		add_sources},
	{"bpf|proc",	ARGUMENT_WORDS,		add_sample_sources},
	{"[all]",	ARGUMENT_WORDS,		add_all},
};
/* clang-format on */

static const struct argument_row *argument_of(const struct option_row *row)
{
	static const struct argument_row other = {NULL, ARGUMENT_OTHER, NULL};

	for (size_t i = 0; i < sizeof(argument_rows) / sizeof(argument_rows[0]); i++)
		if (row->argument && !strcmp(argument_rows[i].argument, row->argument))
			return &argument_rows[i];
	return &other;
}

/* Names of columns and sets with spaces between. */
static void add_columns(struct text *script)
{
	for (size_t i = 0; i < column_set_count; i++)
		text_add_format(script, "%s%s", i ? " " : "", column_sets[i].name);
	for (size_t i = 0; i < sample_column_count; i++)
		text_add_format(script, " %s", sample_columns[i].name);
	for (size_t i = 0; i < measure_column_count; i++)
		text_add_format(script, " %s", measure_columns[i].name);
}

static void add_traces(struct text *script)
{
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t count = trace_kinds_list(~0u, kinds);

	for (size_t i = 0; i < count; i++)
		text_add_format(script, "%s%s", i ? " " : "", kinds[i]->name);
}

/* Adds words for use within single quotes of any shell; zsh's _arguments needs [, ] and :
 * escaped. */
static void add_quoted(struct text *script, const char *words, bool zsh)
{
	for (; *words; words++) {
		if (*words == '\'')
			text_add_string(script, "'\\''");
		else if (zsh && strchr("[]:\\", *words))
			text_add_format(script, "\\%c", *words);
		else
			text_add_char(script, *words);
	}
}

/* --- bash */

static const char bash_head[] =
	"# Completion of tsnap(8) for bash, made from tsnap's tables.\n"
	"\n"
	"# The last of names with commas between them.\n"
	"_tsnap_names()\n"
	"{\n"
	"\tlocal before=\n"
	"\t[[ $cur != *,* ]] || before=${cur%,*},\n"
	"\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$1\" -- \"${cur##*,}\")\n"
	"\tcompopt -o nospace 2>/dev/null\n"
	"}\n"
	"\n"
	"_tsnap()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tCOMPREPLY=()\n"
	"\t# --option=value comes as three words\n"
	"\tif [[ $cur == = ]]; then\n"
	"\t\tcur=\n"
	"\telif [[ $prev == = ]]; then\n"
	"\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\tcase $prev in\n";

static void bash_add_action(struct text *script, const struct argument_row *argument)
{
	switch (argument->kind) {
	case ARGUMENT_FILE:
		text_add_string(script, "compopt -o filenames 2>/dev/null; "
					"mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
		break;
	case ARGUMENT_USER:
		text_add_string(script, "mapfile -t COMPREPLY < <(compgen -u -- \"$cur\")");
		break;
	case ARGUMENT_COLUMNS:
		text_add_string(script, "_tsnap_names '");
		add_columns(script);
		text_add_char(script, '\'');
		break;
	case ARGUMENT_TRACES:
		text_add_string(script, "_tsnap_names '");
		add_traces(script);
		text_add_char(script, '\'');
		break;
	case ARGUMENT_WORDS:
		text_add_string(script, "mapfile -t COMPREPLY < <(compgen -W '");
		argument->add_words(script);
		text_add_string(script, "' -- \"$cur\")");
		break;
	case ARGUMENT_OTHER:
		text_add_char(script, ':');
		break;
	}
}

static void bash_add(struct text *script)
{
	text_add_string(script, bash_head);
	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_table[i];

		/* an optional argument: an option may follow as well */
		if (!row->argument || row->kind == OPTION_FEW)
			continue;
		text_add_char(script, '\t');
		if (row->letter)
			text_add_format(script, "-%c | ", row->letter);
		text_add_format(script, "--%s) ", row->name);
		bash_add_action(script, argument_of(row));
		text_add_string(script, " ;;\n");
	}
	text_add_string(script, "\t*) mapfile -t COMPREPLY < <(compgen -W '");
	for (size_t i = 0; i < option_count; i++)
		text_add_format(script, "%s--%s", i ? " " : "", option_table[i].name);
	text_add_string(script, "' -- \"$cur\") ;;\n\tesac\n}\n\ncomplete -F _tsnap tsnap\n");
}

/* --- zsh */

static void zsh_add_action(struct text *script, const struct argument_row *argument)
{
	switch (argument->kind) {
	case ARGUMENT_FILE:
		text_add_string(script, "_files");
		break;
	case ARGUMENT_USER:
		text_add_string(script, "_users");
		break;
	case ARGUMENT_COLUMNS:
		text_add_string(script, "_tsnap_columns");
		break;
	case ARGUMENT_TRACES:
		text_add_string(script, "_tsnap_traces");
		break;
	case ARGUMENT_WORDS:
		text_add_char(script, '(');
		argument->add_words(script);
		text_add_char(script, ')');
		break;
	case ARGUMENT_OTHER:
		text_add_char(script, ' ');
		break;
	}
}

static void zsh_add_option(struct text *script, const struct option_row *row)
{
	bool may_miss = option_argument_may_miss(row);

	text_add_string(script, " \\\n\t");
	if (row->letter)
		text_add_format(script, "'(-%c --%s)'{-%c,--%s%s}'[", row->letter, row->name,
				row->letter, row->name, row->argument && !may_miss ? "=" : "");
	else
		text_add_format(script, "'--%s%s[", row->name,
				row->argument && !may_miss ? "=" : "");
	add_quoted(script, option_help(row), true);
	text_add_char(script, ']');
	if (row->argument) {
		text_add_string(script, may_miss ? "::" : ":");
		add_quoted(script, row->argument, true);
		text_add_char(script, ':');
		zsh_add_action(script, argument_of(row));
	}
	text_add_char(script, '\'');
}

static void zsh_add(struct text *script)
{
	text_add_string(script, "#compdef tsnap\n"
				"# Completion of tsnap(8) for zsh, made from tsnap's tables.\n\n"
				"_tsnap_columns()\n{\n\t_values -s , column ");
	add_columns(script);
	text_add_string(script, "\n}\n\n_tsnap_traces()\n{\n\t_values -s , kind ");
	add_traces(script);
	text_add_string(script, "\n}\n\n_arguments -s");
	for (size_t i = 0; i < option_count; i++)
		zsh_add_option(script, &option_table[i]);
	text_add_char(script, '\n');
}

/* --- fish */

static void fish_add_action(struct text *script, const struct argument_row *argument)
{
	switch (argument->kind) {
	case ARGUMENT_FILE:
		text_add_string(script, " -r -F");
		break;
	case ARGUMENT_USER:
		text_add_string(script, " -x -a '(__fish_complete_users)'");
		break;
	case ARGUMENT_COLUMNS:
		text_add_string(script, " -x -a '(__fish_complete_list , __tsnap_columns)'");
		break;
	case ARGUMENT_TRACES:
		text_add_string(script, " -x -a '(__fish_complete_list , __tsnap_traces)'");
		break;
	case ARGUMENT_WORDS:
		text_add_string(script, " -x -a '");
		argument->add_words(script);
		text_add_char(script, '\'');
		break;
	case ARGUMENT_OTHER:
		text_add_string(script, " -x");
		break;
	}
}

static void fish_add(struct text *script)
{
	text_add_string(script, "# Completion of tsnap(8) for fish, made from tsnap's tables.\n\n"
				"function __tsnap_columns\n\tstring split ' ' '");
	add_columns(script);
	text_add_string(script, "'\nend\n\nfunction __tsnap_traces\n\tstring split ' ' '");
	add_traces(script);
	text_add_string(script, "'\nend\n\ncomplete -c tsnap -f\n");
	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_table[i];

		text_add_string(script, "complete -c tsnap");
		if (row->letter)
			text_add_format(script, " -s %c", row->letter);
		text_add_format(script, " -l %s", row->name);
		if (row->argument && row->kind != OPTION_FEW)
			fish_add_action(script, argument_of(row));
		text_add_string(script, " -d '");
		add_quoted(script, option_help(row), false);
		text_add_string(script, "'\n");
	}
}

int completion_add(struct text *script, const char *shell, struct error *e)
{
	if (!strcmp(shell, "bash"))
		bash_add(script);
	else if (!strcmp(shell, "zsh"))
		zsh_add(script);
	else if (!strcmp(shell, "fish"))
		fish_add(script);
	else
		return error_set(e, EINVAL, EXIT_USAGE, "no completion for %s", shell);
	return 0;
}
