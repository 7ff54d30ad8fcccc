/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of the command line and of --config files, by the rows of option_table.c. */
#include "cli/option_table.h"
#include "base/config_file.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/memory.h"
#include "base/quantity.h"
#include "kernel/own_probe.h"
#include "render/renderer.h"
#include "sample/program_variable.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FEW_DEFAULT "3"
/* code of a row without a letter: CODE_FIRST and its index, above all letters */
#define CODE_FIRST 256

static int option_code(size_t row)
{
	return option_table[row].letter ? option_table[row].letter : (int)(CODE_FIRST + row);
}

static const struct option_row *option_of_code(int code)
{
	for (size_t i = 0; i < option_count; i++)
		if (option_code(i) == code)
			return &option_table[i];
	return NULL;
}

static const char *option_name_at(void *from, size_t at)
{
	(void)from;
	return at < option_count ? option_table[at].name : NULL;
}

/* How the numbers of each kind of option are typed. */
static const struct number_kind {
	enum quantity quantity;
	int64_t bare;	     /* what a number without a unit counts */
	const char *example; /* of an argument that is above 0 */
} number_kinds[] = {
	[OPTION_NUMBER] = {QUANTITY_COUNT, 1, NULL},
	[OPTION_FEW] = {QUANTITY_COUNT, 1, NULL},
	[OPTION_TIME] = {QUANTITY_TIME, US_PER_SECOND, "90s, 48h or 7d"},
	[OPTION_MS] = {QUANTITY_TIME, US_PER_MS, NULL},
	[OPTION_BYTES] = {QUANTITY_BYTES, 1, "500M or 20G"},
	[OPTION_PERCENT] = {QUANTITY_PERCENT, 10, "5% (below 100)"},
};

/* Sets an error like "-F 5000: HZ must be 1 to 1000". */
static int number_fail(const struct option_row *row, const char *typed, const char *argument,
		       struct error *e)
{
	const struct number_kind *kind = &number_kinds[row->kind];
	int64_t unit = kind->bare;
	const char *name = row->argument ? row->argument : "";
	struct text range = {0};

	name += *name == '[';
	if (kind->example && row->least == 1)
		return error_set(e, EINVAL, EXIT_USAGE, "%s %s: %s must be above 0, such as %s",
				 typed, argument, name, kind->example);
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

const struct option_row *option_of_mode(const struct config *config)
{
	enum mode mode = config->mode == MODE_LIST_JSON ? MODE_LIST : config->mode;
	const struct option_row *row = option_table;

	while (row->mode != mode || (row->format && row->format != config->format))
		row++;
	return row;
}

/* Adds a probe of --probe, or a context of --context, to those that *to points to. */
static int probe_add(struct own_probes **to, const char *text, bool context, struct error *e)
{
	struct own_probes *probes = *to;
	struct own_item *item;

	if (!probes)
		*to = probes = memory_get(sizeof(*probes));
	if (probes->count == OWN_PROBES_MAX)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--probe, --context: at most %d probes at a time", OWN_PROBES_MAX);
	item = &probes->items[probes->count++];
	return context ? own_context_parse(text, item, e) : own_probe_parse(text, &item->probe, e);
}

/* Adds a column of --context: a variable, or what threads have between two probes. */
static int context_add(struct config *config, const char *text, struct error *e)
{
	static const enum column_kind kinds[] = {[OWN_INT] = KIND_NUMBER,
						 [OWN_BYTES] = KIND_NUMBER,
						 [OWN_NS] = KIND_NUMBER,
						 [OWN_HEX] = KIND_HEX,
						 [OWN_STR] = KIND_TEXT};
	const struct own_probe *probe;
	size_t slot;
	int err;

	if (!own_context_is(text))
		return program_variable_add(text, e);
	err = probe_add(&config->live.own, text, true, e);
	if (err)
		return err;
	slot = config->live.own->count - 1;
	probe = &config->live.own->items[slot].probe;
	return held_column_add(text, probe->name, kinds[probe->type], slot, e);
}

static int mode_set(struct config *config, const struct option_row *row, struct error *e)
{
	const struct renderer *format = row->format ? row->format : config->format;
	bool other = config->mode != row->mode || config->format != format;

	if (row->mode == MODE_REPORT)
		return 0;
	if (format && format->lists && other &&
	    (config->mode == MODE_LIST || row->mode == MODE_LIST)) {
		config->mode = MODE_LIST_JSON;
		return 0;
	}
	/* help and version override other options */
	if (config->mode != MODE_REPORT && other && row->mode < MODE_VERSION)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--%s can't go with --%s: both choose the output", row->name,
				 option_of_mode(config)->name);
	if (config->mode < MODE_VERSION) {
		config->mode = row->mode;
		config->format = format;
	}
	return 0;
}

static int option_unknown(int letter, const char *word, struct error *e);
static int config_read(struct config *config, const char *path, struct error *e);

/* Takes an option. typed: its name with dashes, for errors. */
static int option_take(struct config *config, const struct option_row *row, const char *typed,
		       const char *argument, struct error *e)
{
	char *to = (char *)config + row->offset;
	int64_t number;

	if (argument && !*argument)
		return error_set(e, EINVAL, EXIT_USAGE, "%s: %s must not be empty", typed,
				 row->argument);
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)to = true;
		break;
	case OPTION_TEXT:
	case OPTION_WORD:
		*(const char **)to = argument;
		break;
	case OPTION_FEW:
		argument = argument ? argument : FEW_DEFAULT;
		/* fall through */
	case OPTION_NUMBER:
	case OPTION_TIME:
	case OPTION_MS:
	case OPTION_BYTES:
	case OPTION_PERCENT:
		if (quantity_read(argument, number_kinds[row->kind].quantity,
				  number_kinds[row->kind].bare, &number) ||
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
	case OPTION_PROBE:
		return probe_add((struct own_probes **)to, argument, false, e);
	case OPTION_COLUMN:
		return context_add(config, argument, e);
	case OPTION_MODE:
		break;
	}
	return mode_set(config, row, e);
}

static int option_unknown(int letter, const char *word, struct error *e)
{
	const char *nearest;
	char name[64];

	if (letter && option_of_code(letter)) /* like --all=yes */
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
	for (size_t i = 0; i < option_count; i++)
		if (!strcmp(option_table[i].name, name))
			return &option_table[i];
	return NULL;
}

/* Takes "keep = 7d", "keep 7d", or "all": a config_line_callback. Values are permanent. */
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
	if (row->argument && !*value && !option_argument_may_miss(row))
		return error_set(e, EINVAL, EXIT_USAGE, "%s needs %s", line, row->argument);
	return option_take(to, row, line, *value ? name_of_string(value) : NULL, e);
}

/* Takes the options of a file, which must be there. Options after --config override them. */
static int config_read(struct config *config, const char *path, struct error *e)
{
	if (access(path, F_OK))
		return error_set(e, errno, EXIT_USAGE, "--config %s: %s", path, strerror(errno));
	return config_file_read(path, config_line_take, config, e);
}

static void getopt_fill(char *letters, struct option *longs)
{
	*letters++ = ':'; /* getopt reports a missing argument as ':' */
	for (size_t i = 0; i < option_count; i++) {
		const struct option_row *row = &option_table[i];

		longs[i] = (struct option){row->name, row->argument != NULL, NULL, option_code(i)};
		if (option_argument_may_miss(row))
			longs[i].has_arg = optional_argument;
		if (!row->letter)
			continue;
		*letters++ = (char)row->letter;
		if (row->argument && !option_argument_may_miss(row))
			*letters++ = ':';
	}
	*letters = '\0';
}

/* Returns an argument that may be left out: getopt takes it only after a '=', but it may be the
 * next word as well. */
static const char *argument_next(const struct option_row *row, char **argv)
{
	const char *word = optarg ? NULL : argv[optind];
	bool taken = word && *word &&
		     (row->kind == OPTION_FEW	? !word[strspn(word, "0123456789")]
		      : row->kind == OPTION_ALL ? !strcmp(word, "all")
						: *word != '-');

	optind += taken;
	return taken ? word : optarg;
}

/* Takes the words that are no options: processes, as those of -p. */
static void processes_take(struct config *config, char **words)
{
	struct text list = {0};

	text_add_string(&list, config->live.process ? config->live.process : "");
	for (; *words; words++)
		text_add_format(&list, "%s%s", list.length ? "," : "", *words);
	config->live.process = name_of_string(text_string(&list));
	config->named = true;
	text_done(&list);
}

int config_parse(struct config *config, int argc, char **argv, struct error *e)
{
	char letters[2 * OPTIONS_MAX + 2], typed[64];
	struct option longs[OPTIONS_MAX + 1] = {0};
	struct config parsed = {.words = argv};
	int code, index, err;

	getopt_fill(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: restart the scan */
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
		if (option_argument_may_miss(row))
			optarg = (char *)argument_next(row, argv);
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
	if (!parsed.diff && optind < argc)
		processes_take(&parsed, argv + optind);
	else if (optind < argc)
		return error_set(e, EINVAL, EXIT_USAGE, "'%s': --diff takes two files",
				 argv[optind]);
	err = config_check(&parsed, e);
	if (!err)
		*config = parsed;
	return err;
}
