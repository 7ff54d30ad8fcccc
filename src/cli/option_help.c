/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --help: the ways in, on one screen; and --help all. */
#include "cli/option_table.h"
#include "kernel/type_source.h"

#include <string.h>

const char *option_help(const struct option_row *row)
{
	static struct text help;

	if (!row->argument || strcmp(row->argument, "SOURCE") != 0)
		return row->help;
	text_clear(&help);
	text_add_format(&help, "%s ", row->help);
	type_source_names_add(&help, ", ", ", ");
	return text_string(&help);
}

#define HELP_COLUMN 32
#define HELP_WIDTH 80

/* Adds words from HELP_COLUMN on, which the line has reached, in as many lines as needed. */
static void help_add(struct text *text, const char *words)
{
	size_t at = HELP_COLUMN;

	while (*words) {
		size_t length = strcspn(words, " ");

		if (at + length > HELP_WIDTH) {
			text_end(text, text->bytes + text->length - 1); /* cut the last space */
			text_add_format(text, "\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		}
		text_add(text, words, length);
		words += length + strspn(words + length, " ");
		if (*words)
			text_add_char(text, ' ');
		at += length + 1;
	}
	text_add_char(text, '\n');
}

static void option_describe(struct text *text, const struct option_row *row)
{
	size_t start = text->length;

	if (row->letter)
		text_add_format(text, "  -%c, ", row->letter);
	else
		text_add_string(text, "      ");
	text_add_format(text, "--%s%s%s", row->name, row->argument ? " " : "",
			row->argument ? row->argument : "");
	do
		text_add_char(text, ' ');
	while (text->length - start < HELP_COLUMN);
	help_add(text, option_help(row));
}

static const char more_words[] =
	"\nEXPR: comparisons of columns with && || ! and ( ), as in\n"
	"  state=D && comm~\"pg.*\" && dwait_us>1ms || !user=root\n"
	"by = != < <= > >= (numbers, with units; times) and ~ !~ (text: an extended\n"
	"regular expression). `cgroup=` is true where there is none. An expression that\n"
	"names the state decides about states itself; otherwise they are the active\n"
	"ones, or with -a all. -p, -t, -u, -c and --cgroup go with it: all must hold.\n"
	"\nFILE@FROM..TO: the samples from FROM on and before TO; either may be missing.\n"
	"A time without a day (20:42:53.5) is of the first row's day. Times in FILE@ and\n"
	"EXPR are UTC unless they have a zone (+01:00); all others are local unless they\n"
	"have one (Z, +01:00). Lengths of time have units: us, ms, s, m, h, d, w.\n"
	"\nIds are those that /proc shows. In a container with a pid namespace of its own,\n"
	"threads outside of it are left out.\n";

/* The ways in: --help alone is one screen of 20 lines. */
static const char first_words[] =
	"What are this host's threads doing, and what do they wait for?\n\n"
	"  tsnap                            the whole host, for 5 seconds\n"
	"  tsnap --findings                 what is wrong, by the time that it costs\n"
	"  tsnap postgres 4711              these processes: what each thread waits for\n"
	"  tsnap --top                      full screen with the last ten minutes\n"
	"  tsnap --chains                   who blocks whom: locks, servers, deadlocks\n"
	"  tsnap -g comm,waits_on           group by columns; --list WORD finds them\n"
	"  tsnap --filter 'state=D'         only samples for which this is true\n"
	"  tsnap --flame x.svg              a flame graph of all stacks\n"
	"  tsnap -o /var/log/tsnap          record until it is stopped\n"
	"  tsnap --replay /var/log/tsnap --from -1h      what the last hour was like\n\n"
	"-d SECONDS: for how long. -i SECONDS: a report every so often. -a: idle threads,\n"
	"too. -r: descendants, too. --csv, --json: rows for programs. -v: more details.\n"
	"tsnap --help all: every option. tsnap --check: what this host lacks. man tsnap.\n";

static const char exit_words[] =
	"Exit codes: 0 done, 1 failed, 2 wrong usage, 77 this host can't.\n";

void options_describe(struct text *text, bool all)
{
	text_add_string(text, "Usage: tsnap [OPTION...] [NAME|PID...]\n");
	if (!all) {
		text_add_format(text, "%s%s", first_words, exit_words);
		return;
	}
	text_add_string(text, "What are this host's threads doing, and what do they wait for? "
			      "Samples them for\n5 seconds and prints one report.\n");
	for (size_t i = 0; i < option_count; i++) {
		if (option_table[i].section)
			text_add_format(text, "\n%s:\n", option_table[i].section);
		option_describe(text, &option_table[i]);
	}
	text_add_format(text, "%s\n%s", more_words, exit_words);
}
