/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --help: the ways in, on one screen; and --help all. */
#include "cli/option_table.h"
#include "kernel/type_source.h"

#include <string.h>

/* clang-format off */
const struct option_section option_sections[] = {
	{"How long, how often",	"duration,interval,rate,count"},
	{"Which threads",	"process,filter,all,descendants,user,comm,threads,cgroup,on-cpu,off-cpu,daemon-ports"},
	{"What to show",	"top,findings,columns,stacks,chains,trace,slower,more-columns,by,sort,all-rows,raw,critical-path,off-wake,python,goroutines,self,text,ascii"},
	{"How to write it",	"csv,flame,record,replay,csv-safe,json,patience,report,folded,pprof,metrics,by-chain,diff,stack-dict"},
	{"Recordings",		"from,to,by-time,heatmap,snapshot,flush,keep,archive,keep-archive,keep-bytes,keep-free,when,keep-around"},
	{"This host and tsnap",	"list,check,help,config,verbose,version"},
	{"Several samplers",	"share,attach"},
	{"How to measure",	NULL},
};
/* clang-format on */
const size_t option_section_count = sizeof(option_sections) / sizeof(option_sections[0]);

static bool name_listed(const char *names, const char *name)
{
	struct text one = {0};
	bool found = false;

	while (!found && text_next_name(&one, &names))
		found = !strcmp(text_string(&one), name);
	text_done(&one);
	return found;
}

static bool option_in_section(const char *name)
{
	for (size_t i = 0; i < option_section_count; i++)
		if (name_listed(option_sections[i].names, name))
			return true;
	return false;
}

void option_section_visit(const struct option_section *section,
			  void (*visit)(void *to, const struct option_row *row), void *to)
{
	const char *names = section->names;
	struct text name = {0};

	while (text_next_name(&name, &names))
		for (size_t i = 0; i < option_count; i++)
			if (!strcmp(option_table[i].name, text_string(&name)))
				visit(to, &option_table[i]);
	text_done(&name);
	for (size_t i = 0; !section->names && i < option_count; i++)
		if (!option_in_section(option_table[i].name))
			visit(to, &option_table[i]);
}

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

static void option_describe(void *to, const struct option_row *row)
{
	struct text *text = to;
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
	for (size_t i = 0; i < option_section_count; i++) {
		text_add_format(text, "\n%s:\n", option_sections[i].title);
		option_section_visit(&option_sections[i], option_describe, text);
	}
	text_add_format(text, "%s\n%s", more_words, exit_words);
}
