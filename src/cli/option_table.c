/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options: a row each; parsing, --help, the manual page and completion follow from the rows. */
#include "cli/option_table.h"
#include "base/config_file.h"
#include "base/names.h"
#include "option_units.h"

#include <errno.h>
#include <stdio.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct config, member)
#define FEW_DEFAULT "3"

const struct option_row option_table[] = {
	{'d', "duration", "SECONDS", "sample this long (default: 5; --csv: no end)", OPTION_SECONDS,
	 AT(duration_us), 1000, DURATION_MAX_US, 0},
	{'i', "interval", "SECONDS", "a report every so often, until -n, -d or Ctrl-C",
	 OPTION_SECONDS, AT(interval_us), 1000, DURATION_MAX_US, 0},
	{'n', "count", "COUNT", "end after so many reports (with --csv: scans)", OPTION_NUMBER,
	 AT(count), 1, INT64_MAX, 0},
	{'F', "rate", "HZ", "scans per second (default: 20)", OPTION_NUMBER, AT(rate_hz), 1,
	 RATE_MAX_HZ, 0},
	{'p', "process", "PID|NAME,...", "only these processes, by id or name pattern", OPTION_TEXT,
	 AT(process), 0, 0, 0},
	{'r', "descendants", NULL, "with -p: their descendants, too", OPTION_FLAG, AT(descendants),
	 0, 0, 0},
	{'t', "threads", "TID,...", "only these threads", OPTION_TEXT, AT(threads), 0, 0, 0},
	{'u', "user", "USER", "only threads of this user, by name or uid", OPTION_TEXT, AT(user), 0,
	 0, 0},
	{'c', "comm", "NAME", "only threads with this name (pattern)", OPTION_TEXT, AT(comm), 0, 0,
	 0},
	{0, "cgroup", "PATH", "only threads of control groups whose path matches", OPTION_TEXT,
	 AT(cgroup), 0, 0, 0},
	{0, "filter", "EXPR", "only samples for which this is true", OPTION_TEXT, AT(filter), 0, 0,
	 0},
	{'a', "all", NULL, "threads in every state, idle sleepers too", OPTION_FLAG, AT(all_states),
	 0, 0, 0},
	{0, "on-cpu", NULL, "only threads on a CPU", OPTION_FLAG, AT(on_cpu), 0, 0, 0},
	{0, "off-cpu", NULL,
	 "only threads off CPU: runnable, blocked, sleeping; with --on-cpu, all threads",
	 OPTION_FLAG, AT(off_cpu), 0, 0, 0},
	{0, "daemon-ports", "N",
	 "local ports below N belong to servers, whose reads are idle (default: 10000)",
	 OPTION_NUMBER, AT(daemon_ports), 1, 65536, 0},
	{'g', "columns", "COLUMN,...", "group by these columns (see --list)", OPTION_TEXT,
	 AT(columns), 0, 0, 0},
	{'G', "more-columns", "COLUMN,...", "add these columns", OPTION_TEXT, AT(more_columns), 0,
	 0, 0},
	{0, "by", "KEY,...",
	 "group by these keys only: columns of --list, or waker, thread, process", OPTION_TEXT,
	 AT(by), 0, 0, 0},
	{0, "top", NULL, "full screen: look, ask, go back in time (?: keys)", OPTION_MODE, 0, 0, 0,
	 MODE_TOP},
	{0, "text", NULL, "with --top: print screens as text; -n 1: one", OPTION_FLAG, AT(text), 0,
	 0, 0},
	{0, "ascii", NULL, "with --top: no characters but ASCII", OPTION_FLAG, AT(ascii), 0, 0, 0},
	{0, "csv", NULL, "write a row per sampled thread, as CSV", OPTION_MODE, 0, 0, 0, MODE_CSV},
	{0, "csv-safe", NULL,
	 "with --csv: an apostrophe before text that a spreadsheet would run as a formula",
	 OPTION_FLAG, AT(csv_safe), 0, 0, 0},
	{0, "json", NULL, "write a row per sampled thread, as a JSON object per line", OPTION_MODE,
	 0, 0, 0, MODE_JSON},
	{0, "patience", "SECONDS",
	 "with --csv or --json: rows wait so long for what is found out of a wait (default: 0)",
	 OPTION_SECONDS, AT(patience_us), 0, 10000000, 0},
	{0, "report", NULL, "with --csv or --json: a row for each group of the report", OPTION_FLAG,
	 AT(report), 0, 0, 0},
	{0, "trace", "KIND,...", "measure every wait of these kinds (see --list)", OPTION_TEXT,
	 AT(trace), 0, 0, 0},
	{0, "stacks", "[COUNT]", "below each line its COUNT most frequent stacks", OPTION_FEW,
	 AT(stacks), 1, 1000, 0},
	{0, "chains", NULL, "who others wait for in the end, locks, deadlocks", OPTION_FLAG,
	 AT(chains), 0, 0, 0},
	{0, "goroutines", NULL,
	 "with -p PID: the goroutines of a Go process, by what they wait for and stack",
	 OPTION_MODE, 0, 0, 0, MODE_GOROUTINES},
	{0, "folded", NULL,
	 "write folded stacks for flamegraph.pl or speedscope, weighted in microseconds",
	 OPTION_MODE, 0, 0, 0, MODE_FOLDED},
	{0, "flame", "FILE", "write an interactive flame graph (SVG)", OPTION_TEXT, AT(output), 0,
	 0, MODE_FLAME},
	{0, "pprof", "FILE", "write a profile for pprof: stacks, with columns as labels",
	 OPTION_TEXT, AT(output), 0, 0, MODE_PPROF},
	{0, "metrics", "FILE",
	 "write counters of time by state, name and call for Prometheus, every -i seconds",
	 OPTION_TEXT, AT(output), 0, 0, MODE_METRICS},
	{0, "by-chain", NULL,
	 "with --folded or --flame: wait chains in place of stacks, each thread below the one that "
	 "it waits for",
	 OPTION_FLAG, AT(by_chain), 0, 0, 0},
	{0, "stack-bytes", "BYTES",
	 "copy this much of the user stack of threads on a CPU (256 to 61440; default: 16384)",
	 OPTION_NUMBER, AT(stack_bytes), STACK_BYTES_MIN, STACK_BYTES_MAX, 0},
	{0, "fp", NULL,
	 "follow frame pointers of threads on a CPU: no copies, less cost, fewer complete stacks",
	 OPTION_FLAG, AT(frame_pointers), 0, 0, 0},
	{0, "off-wake", NULL,
	 "with --stacks, --folded or --flame: threads off CPU, with the stack of the last waker",
	 OPTION_FLAG, AT(off_wake), 0, 0, 0},
	{0, "diff", "A B",
	 "with --flame: how stacks differ in two files (CSV or folded), or parts of one",
	 OPTION_TEXT, AT(diff), 0, 0, 0},
	{0, "slower", "MS", "list each event that took longer (system calls)", OPTION_NUMBER,
	 AT(slower_ms), 1, 3600000, 0},
	{0, "all-rows", NULL, "on a terminal, too, every row of a report", OPTION_FLAG,
	 AT(all_rows), 0, 0, 0},
	{0, "raw", NULL, "count samples in place of sharing out exact times", OPTION_FLAG, AT(raw),
	 0, 0, 0},
	{0, "self", NULL, "show what tsnap itself costs", OPTION_FLAG, AT(self), 0, 0, 0},
	{0, "python", NULL,
	 "in stacks, show Python functions (3.11 to 3.14) instead of the interpreter's",
	 OPTION_FLAG, AT(python), 0, 0, 0},
	{'o', "record", "DIR", "record hourly files into this directory (at 1 Hz)", OPTION_TEXT,
	 AT(record), 0, 0, 0},
	{0, "flush", "SECONDS", "with -o: what a crash may lose (default: 5)", OPTION_SECONDS,
	 AT(flush_us), 100000, 3600000000, 0},
	{0, "keep", "TIME", "with -o: remove hours that ended longer ago (90m, 48h, 7d, 4w)",
	 OPTION_SPAN, AT(retention.keep_us), 0, 0, 0},
	{0, "keep-bytes", "SIZE",
	 "with -o: remove the oldest before files get larger in all (500M, 20G)", OPTION_BYTES,
	 AT(retention.keep_bytes), 0, 0, 0},
	{0, "keep-free", "PERCENT",
	 "with -o: remove the oldest while less of the file system is free (5%)", OPTION_PERCENT,
	 AT(retention.keep_free_tenths), 0, 0, 0},
	{0, "archive", "HZ", "with -o: so many scans a second once more, kept on their own",
	 OPTION_NUMBER, AT(archive_hz), 1, 1000, 0},
	{0, "keep-archive", "TIME", "with --archive: remove hours of it that ended longer ago",
	 OPTION_SPAN, AT(retention.keep_archive_us), 0, 0, 0},
	{0, "when", "EXPR", "with -o: record scans around moments with such a sample only",
	 OPTION_TEXT, AT(when), 0, 0, 0},
	{0, "keep-around", "TIME", "with --when: so long before and after (default: 30s)",
	 OPTION_SPAN, AT(around_us), 0, 0, 0},
	{0, "replay", "FILE|DIR...", "report on a recording, or a CSV that tsnap wrote",
	 OPTION_TEXT, AT(replay), 0, 0, 0},
	{0, "from", "TIME",
	 "with --replay: samples from then on: 02:10, -1h, 'yesterday 23:50', 2026-11-20T02:10Z",
	 OPTION_TEXT, AT(from), 0, 0, 0},
	{0, "to", "TIME", "with --replay: and before that", OPTION_TEXT, AT(to), 0, 0, 0},
	{0, "by-time", "TIME",
	 "with --replay: a report with time as its first key, in steps of so long (10s, 1m, 1h)",
	 OPTION_SPAN, AT(by_time_us), 0, 0, 0},
	{0, "heatmap", NULL,
	 "with --replay: a line for each group, a sign for each step of --by-time (default: 1m)",
	 OPTION_FLAG, AT(heatmap), 0, 0, 0},
	{0, "snapshot", "FILE",
	 "with --replay: cut what was recorded between --from and --to into one file, to hand on",
	 OPTION_TEXT, AT(snapshot), 0, 0, MODE_SNAPSHOT},
	{0, "stack-dict", "FILE",
	 "file with the stacks behind the numbers ustack and kstack: written with --csv and "
	 "--json, read with --replay",
	 OPTION_TEXT, AT(stack_dict), 0, 0, 0},
	{0, "list", NULL, "list columns, states and kinds of trace, and end", OPTION_MODE, 0, 0, 0,
	 MODE_LIST},
	{0, "check", NULL, "show what this host offers and lacks, and end", OPTION_MODE, 0, 0, 0,
	 MODE_CHECK},
	{0, "share", "NAME", "let others --attach to the BPF programs of this tsnap", OPTION_TEXT,
	 AT(share), 0, 0, 0},
	{0, "attach", "NAME", "use the BPF programs of a tsnap --share NAME, without a compile",
	 OPTION_TEXT, AT(attach), 0, 0, 0},
	{0, "max-threads", "COUNT", "capacity for this many threads (default: fit to the host)",
	 OPTION_NUMBER, AT(max_threads), 64, THREADS_MAX, 0},
	{0, "kernel-types", "SOURCE",
	 "source of the layout of kernel types: auto, btf, headers, kheaders, offsets", OPTION_TEXT,
	 AT(kernel_types), 0, 0, 0},
	{0, "btf", "FILE", "take the layout of kernel types from this BTF file", OPTION_TEXT,
	 AT(btf_file), 0, 0, 0},
	{0, "offsets", "FILE", "take the layout of kernel types from a file of --write-offsets",
	 OPTION_TEXT, AT(offsets_file), 0, 0, 0},
	{0, "write-offsets", "FILE", "write the layout of this kernel's types to a file, and end",
	 OPTION_TEXT, AT(write_offsets), 0, 0, MODE_WRITE_OFFSETS},
	{0, "without", "FACT,...",
	 "act as if the host lacked these (see --check), or as on a kernel-4.14", OPTION_TEXT,
	 AT(without), 0, 0, 0},
	{0, "no-realtime", NULL,
	 "sample at normal priority; on a busy host samples then lean towards sleepers",
	 OPTION_FLAG, AT(no_realtime), 0, 0, 0},
	{0, "no-sandbox", NULL, "keep all privileges and system calls after the start", OPTION_FLAG,
	 AT(no_sandbox), 0, 0, 0},
	{0, "config", "FILE",
	 "take options from a file: lines of names as above, without dashes, and values",
	 OPTION_CONFIG, AT(config_file), 0, 0, 0},
	{'v', "verbose", NULL, "print details of errors, and what was chosen", OPTION_FLAG,
	 AT(verbose), 0, 0, 0},
	{'V', "version", NULL, "print the version, and end", OPTION_MODE, 0, 0, 0, MODE_VERSION},
	{'h', "help", "[all]", "print this help, or all of it, and end", OPTION_ALL, AT(help_all),
	 0, 0, MODE_HELP},
};

#define OPTION_COUNT (sizeof(option_table) / sizeof(option_table[0]))
const size_t option_count = OPTION_COUNT;

/* getopt gives a row without a letter by its index above all letters */
#define CODE_FIRST 256

static int option_code(size_t row)
{
	return option_table[row].letter ? option_table[row].letter : (int)(CODE_FIRST + row);
}

static const struct option_row *option_of_code(int code)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_code(i) == code)
			return &option_table[i];
	return NULL;
}

static const char *option_name_at(void *from, size_t at)
{
	(void)from;
	return at < OPTION_COUNT ? option_table[at].name : NULL;
}

/* Reads digits with at most `decimals` decimals as a number of that many decimals. */
static int decimal_read(const char *text, int decimals, int64_t *number)
{
	bool pointed = false, any = false;
	int64_t value = 0;

	for (; text && *text; text++) {
		if (*text == '.' && !pointed && decimals) {
			pointed = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return -EINVAL;
		any = true;
		if (pointed && !decimals--)
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return -ERANGE;
	}
	for (; decimals > 0; decimals--)
		if (__builtin_mul_overflow(value, 10, &value))
			return -ERANGE;
	*number = value;
	return any ? 0 : -EINVAL;
}

/* "-F 5000: HZ must be 1 to 1000" */
static int number_fail(const struct option_row *row, const char *typed, const char *argument,
		       struct error *e)
{
	int64_t unit = row->kind == OPTION_SECONDS ? 1000000 : 1;
	const char *name = row->argument ? row->argument : "";
	struct text range = {0};

	name += *name == '[';
	if (row->least < unit)
		text_add_format(&range, "%g", (double)row->least / (double)unit);
	else
		text_add_number(&range, row->least / unit);
	if (row->most == INT64_MAX) {
		text_add_string(&range, " or more");
	} else {
		text_add_string(&range, " to ");
		text_add_number(&range, row->most / unit);
	}
	error_set(e, EINVAL, EXIT_USAGE, "%s %s: %.*s must be %s", typed, argument,
		  (int)strcspn(name, "]"), name, text_string(&range));
	text_done(&range);
	return -EINVAL;
}

static int mode_set(struct config *config, const struct option_row *row, struct error *e)
{
	if (row->mode == MODE_REPORT)
		return 0;
	if ((config->mode == MODE_LIST && row->mode == MODE_JSON) ||
	    (config->mode == MODE_JSON && row->mode == MODE_LIST)) {
		config->mode = MODE_LIST_JSON;
		return 0;
	}
	/* help and version are given whatever else is asked for */
	if (config->mode != MODE_REPORT && config->mode != row->mode && row->mode < MODE_VERSION)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--%s can't go with another option that says what to print",
				 row->name);
	if (config->mode < MODE_VERSION)
		config->mode = row->mode;
	return 0;
}

/* "--keep 7x: TIME must be a number with a unit, as 7d" */
static int units_take(const struct option_row *row, const char *typed, const char *argument,
		      int64_t *to, struct error *e)
{
	const char *as = row->kind == OPTION_SPAN    ? "90m, 48h or 7d"
			 : row->kind == OPTION_BYTES ? "500M or 20G"
						     : "5%, below 100";
	int err = row->kind == OPTION_SPAN    ? span_read(argument, to)
		  : row->kind == OPTION_BYTES ? bytes_read(argument, to)
					      : percent_read(argument, to);

	return err ? error_set(e, EINVAL, EXIT_USAGE, "%s %s: %s must be above 0, as %s", typed,
			       argument, row->argument, as)
		   : 0;
}

static int option_unknown(int letter, const char *word, struct error *e);
static int config_read(struct config *config, const char *path, struct error *e);

/* typed: the option's name with its dashes, for errors. */
static int option_take(struct config *config, const struct option_row *row, const char *typed,
		       const char *argument, struct error *e)
{
	char *to = (char *)config + row->offset;
	int64_t number;

	if (argument && !*argument)
		return error_set(e, EINVAL, EXIT_USAGE, "%s: %s is empty", typed, row->argument);
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)to = true;
		break;
	case OPTION_SPAN:
	case OPTION_BYTES:
	case OPTION_PERCENT:
		if (units_take(row, typed, argument, (int64_t *)to, e))
			return -EINVAL;
		break;
	case OPTION_TEXT:
		*(const char **)to = argument;
		break;
	case OPTION_FEW:
		argument = argument ? argument : FEW_DEFAULT;
		/* fall through */
	case OPTION_NUMBER:
	case OPTION_SECONDS:
		if (decimal_read(argument, row->kind == OPTION_SECONDS ? 6 : 0, &number) ||
		    number < row->least || number > row->most)
			return number_fail(row, typed, argument, e);
		*(int64_t *)to = number;
		break;
	case OPTION_ALL:
		if (argument && strcmp(argument, "all") != 0)
			return error_set(e, EINVAL, EXIT_USAGE, "%s %s: %s or %s all", typed,
					 argument, typed, typed);
		*(bool *)to = argument != NULL;
		break;
	case OPTION_CONFIG:
		*(const char **)to = argument;
		return argument ? config_read(config, argument, e) : 0;
	case OPTION_MODE:
		break;
	}
	return mode_set(config, row, e);
}

static int option_unknown(int letter, const char *word, struct error *e)
{
	const char *nearest;
	char name[64];

	if (letter && option_of_code(letter)) /* --all=yes */
		return error_set(e, EINVAL, EXIT_USAGE, "%s takes no argument", word);
	if (letter)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "unknown option -%c; tsnap --help all lists all options", letter);
	word += strspn(word, "-");
	strncpy(name, word, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[strcspn(name, "=")] = '\0';
	nearest = text_nearest(name, option_name_at, NULL);
	if (!nearest)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "unknown option --%s; tsnap --help all lists all options", name);
	return error_set(e, EINVAL, EXIT_USAGE, "unknown option --%s; nearest: --%s", name,
			 nearest);
}

static const struct option_row *option_of_name(const char *name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (!strcmp(option_table[i].name, name))
			return &option_table[i];
	return NULL;
}

/* Takes "keep = 7d", "keep 7d", or "all": a config_line_taker. Values are kept for good. */
static int config_line_take(void *to, char *line, struct error *e)
{
	char *value = line + strcspn(line, " \t=");
	const struct option_row *row;
	char ended = *value;

	*value = '\0';
	row = option_of_name(line);
	if (!row)
		return option_unknown(0, line, e);
	value = ended ? config_trim(value + 1) : value;
	if (*value == '=' && ended != '=')
		value = config_trim(value + 1);
	if (row->kind == OPTION_CONFIG || row->mode >= MODE_VERSION)
		return error_set(e, EINVAL, EXIT_USAGE, "%s is for the command line only", line);
	if (!row->argument && *value)
		return error_set(e, EINVAL, EXIT_USAGE, "%s takes no argument", line);
	if (row->argument && !*value && row->kind != OPTION_FEW)
		return error_set(e, EINVAL, EXIT_USAGE, "%s needs %s", line, row->argument);
	return option_take(to, row, line, *value ? name_of_string(value) : NULL, e);
}

/* Takes the options of a file, which must be there. Options behind --config override them. */
static int config_read(struct config *config, const char *path, struct error *e)
{
	if (access(path, F_OK))
		return error_set(e, errno, EXIT_USAGE, "--config %s: %s", path, strerror(errno));
	return config_file_read(path, config_line_take, config, e);
}

static void getopt_fill(char *letters, struct option *longs)
{
	*letters++ = ':'; /* a missing argument is told apart */
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_table[i];

		longs[i] = (struct option){row->name, row->argument != NULL, NULL, option_code(i)};
		if (row->kind == OPTION_FEW || row->kind == OPTION_ALL)
			longs[i].has_arg = optional_argument;
		if (!row->letter)
			continue;
		*letters++ = (char)row->letter;
		if (row->argument && row->kind != OPTION_ALL)
			*letters++ = ':';
	}
	*letters = '\0';
}

/* getopt takes an argument that may be missing only behind a '='. tsnap has no operands that are
 * numbers. */
static const char *number_next(char **argv)
{
	const char *word = optarg ? NULL : argv[optind];

	if (word && *word && !word[strspn(word, "0123456789")])
		optind++;
	else
		word = optarg;
	return word;
}

/* The same for the word "all". */
static const char *all_next(char **argv)
{
	const char *word = optarg ? NULL : argv[optind];

	if (!word || strcmp(word, "all") != 0)
		return optarg;
	optind++;
	return word;
}

int config_parse(struct config *config, int argc, char **argv, struct error *e)
{
	char letters[2 * OPTION_COUNT + 2], typed[64];
	struct option longs[OPTION_COUNT + 1] = {0};
	struct config parsed = {.words = argv};
	int code, index, err;

	getopt_fill(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start anew */
	for (;;) {
		const struct option_row *row;

		index = -1;
		code = getopt_long(argc, argv, letters, longs, &index);
		if (code == -1)
			break;
		if (code == '?')
			return option_unknown(optopt, argv[optind - 1], e);
		if (code == ':')
			return error_set(e, EINVAL, EXIT_USAGE, "%s needs %s", argv[optind - 1],
					 option_of_code(optopt)->argument);
		row = option_of_code(code);
		if (index >= 0)
			snprintf(typed, sizeof(typed), "--%s", row->name);
		else
			snprintf(typed, sizeof(typed), "-%c", row->letter);
		if (row->kind == OPTION_FEW)
			optarg = (char *)number_next(argv);
		if (row->kind == OPTION_ALL)
			optarg = (char *)all_next(argv);
		err = option_take(&parsed, row, typed, row->argument ? optarg : NULL, e);
		if (err)
			return err;
	}
	if (parsed.mode >= MODE_VERSION) {
		*config = parsed;
		return 0;
	}
	if (parsed.diff && optind < argc)
		parsed.diff_after = argv[optind++];
	if (parsed.replay && optind < argc) {
		parsed.replay_more = argv + optind;
		optind = argc;
	}
	if (optind < argc)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "'%s': tsnap takes options only; --help all lists them",
				 argv[optind]);
	err = config_check(&parsed, e);
	if (!err)
		*config = parsed;
	return err;
}
