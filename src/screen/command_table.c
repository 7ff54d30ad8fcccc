/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/command.h"
#include "screen/key.h"
#include "screen/list.h"
#include "base/config_file.h"

#include <errno.h>
#include <string.h>

/* clang-format off */
const struct command commands[] = {
	{"keep",	"Enter",	"keep only this value, and go one key deeper",	command_keep, 0, true},
	{"exclude",	"Space",	"leave this value out",				command_exclude, 0, true},
	{"undo",	"Backspace",	"undo the last step, whatever it was",		command_undo, 0, false},
	{"filter",	"f",		"edit the filter expression",			command_filter, 0, false},
	{"columns",	"g",		"choose columns from a list",			command_columns, 0, false},
	{"drop",	"Del d",	"take this column out",				command_column_drop, 0, true},
	{"left",	"<",		"move this column to the left",			command_column_move, -1, true},
	{"right",	">",		"move this column to the right",		command_column_move, 1, true},
	{"sort",	"s",		"sort by a column of a list",			command_sort, 0, false},
	{"sort-here",	"S",		"sort by this column; again: in reverse",	command_sort_here, 0, true},
	{"all-states",	"a",		"threads in every state, or active ones only",	command_all_states, 0, false},
	{"value",	"v",		"the whole of the value under the cursor",	command_value, 0, true},
	{"peek",	"p",		"what this row is made of: its threads, calls, files, waits, wakers", command_peek, 0, true},
	{"tree",	"T",		"processes as a tree: by container, unit, process, thread, or by parent", command_tree, 0, false},
	{"heat",	"h",		"heat map: time across, state_us or threads down",	command_heat, 0, false},
	{"follow",	"F",		"follow this row's thread or process",		command_follow, 0, true},
	{"findings",	"!",		"what is wrong: all findings in this window; Enter shows the threads of one", command_findings, 0, false},
	{"views",	"Tab",		"ready-made views (also the keys 1 to 9)",	command_views, 0, false},
	{"find",	"/",		"find words in the table",			command_find, 0, true},
	{"find-next",	"n",		"find them again",				command_find_again, 1, true},
	{"find-previous", "N",		"find them again, upwards",			command_find_again, -1, true},
	{"back",	"[",		"one window back in time",			command_move, -1, false},
	{"forth",	"]",		"one window forth",				command_move, 1, false},
	{"back-far",	"{",		"ten windows back",				command_move, -10, false},
	{"forth-far",	"}",		"ten windows forth",				command_move, 10, false},
	{"now",		".",		"the newest window again",			command_now, 0, false},
	{"freeze",	"z",		"freeze this window; sampling goes on",		command_freeze, 0, false},
	{"jump",	"t",		"jump to a time: 14:03, 14:03:20, -5m",		command_jump, 0, false},
	{"mark",	"m",		"mark this window; then: how others differ from it",	command_mark, 0, false},
	{"window",	"W",		"length of the window",				command_window, 0, false},
	{"refresh",	"i",		"seconds between refreshes",			command_refresh, 0, false},
	{"write",	"w",		"write the screen, CSV, folded stacks, a flame graph, or this view under a name", command_write, 0, false},
	{"command-line", "y",		"the command line that makes this view",	command_line, 0, false},
	{"palette",	":",		"all commands by name",				command_palette, 0, false},
	{"help",	"? F1",		"this help",					command_help, 0, false},
	{"up",		"Up k",		"one row up",					command_row, -1, false},
	{"down",	"Down j",	"one row down",					command_row, 1, false},
	{"page-up",	"PgUp Ctrl-B",	"one page up",					command_page, -1, false},
	{"page-down",	"PgDn Ctrl-F",	"one page down",				command_page, 1, false},
	{"first",	"Home",		"first row",					command_end, -1, false},
	{"last",	"End G",	"last row",					command_end, 1, false},
	{"cursor-left",	"Left",		"one column to the left",			command_left, 0, true},
	{"cursor-right", "Right",	"one column to the right; from the last one: peek", command_right, 0, true},
	{"redraw",	"Ctrl-L",	"draw the whole screen anew",			command_redraw, 0, false},
	{"background",	"Ctrl-Z",	"stop, as a job of the shell",			command_stop, 0, false},
	{"quit",	"q Ctrl-C",	"end",						command_quit, 0, false},
};
/* clang-format on */
const size_t command_count = sizeof(commands) / sizeof(commands[0]);

_Static_assert(sizeof(commands) / sizeof(commands[0]) <= BINDINGS_MAX, "each has its keys");

void add_key_of(struct text *text, const struct view *view, command_run *run)
{
	size_t command = 0;

	while (command < command_count && commands[command].run != run)
		command++;
	if (command < command_count && view->bindings.keys[command][0])
		key_add(text, view->bindings.keys[command][0]);
	else /* the palette has every command, even one without a key */
		text_add_format(text, ":%s", command < command_count ? commands[command].name : "");
}

void view_say_key(struct view *view, bool failed, command_run *run, const char *format)
{
	struct text words = {0};
	const char *key = strstr(format, "%s");

	text_add(&words, format, (size_t)(key - format));
	add_key_of(&words, view, run);
	text_add_string(&words, key + 2);
	view_say(view, failed, "%s", text_string(&words));
	text_done(&words);
}

/* --- keys of commands */

/* Sets the command's keys from their names. 0, or -EINVAL with e. */
static int keys_set(struct bindings *bindings, size_t command, const char *names, struct error *e)
{
	int32_t *keys = bindings->keys[command];
	size_t count = 0;

	memset(keys, 0, sizeof(bindings->keys[command]));
	while (*names) {
		size_t length = strcspn(names, " \t");
		int32_t key = key_of_name(names, length);
		size_t other = bindings_command(bindings, key);

		if (key < 0 || key == KEY_CODE_ESCAPE || (key >= '1' && key <= '9'))
			return error_set(
				e, EINVAL, EXIT_USAGE,
				key < 0 ? "no such key: %.*s (one character, Ctrl-A to Ctrl-Z, "
					  "F1 to F12, Tab, Enter, Space, PgUp ...)"
					: "%.*s can't be bound: Esc closes, and digits choose "
					  "views",
				(int)length, names);
		if (count == BINDING_KEYS_MAX)
			return error_set(e, EINVAL, EXIT_USAGE, "more than %d keys",
					 BINDING_KEYS_MAX);
		for (size_t i = 0; other != SIZE_MAX && i < BINDING_KEYS_MAX; i++)
			if (bindings->keys[other][i] == key)
				memmove(&bindings->keys[other][i], &bindings->keys[other][i + 1],
					(BINDING_KEYS_MAX - 1 - i) * sizeof(int32_t));
		keys[count++] = key;
		names += length + strspn(names + length, " \t");
	}
	return 0;
}

void bindings_begin(struct bindings *bindings)
{
	struct error e = {0};

	*bindings = (struct bindings){0};
	for (size_t i = 0; i < command_count && i < BINDINGS_MAX; i++)
		keys_set(bindings, i, commands[i].keys, &e);
	error_done(&e);
}

static int keys_line_take(void *to, char *line, struct error *e)
{
	struct bindings *bindings = to;
	char *sign = strchr(line, '='), *name;
	size_t command = 0;

	if (!sign)
		return error_set(e, EINVAL, EXIT_USAGE, "expected COMMAND = KEY ...");
	*sign = '\0';
	name = config_trim(line);
	while (command < command_count && strcmp(commands[command].name, name) != 0)
		command++;
	if (command == command_count)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "no such command: %s (: in tsnap --top lists all)", name);
	return keys_set(bindings, command, config_trim(sign + 1), e);
}

int bindings_read(struct bindings *bindings, const char *path, struct error *e)
{
	return config_file_read(path, keys_line_take, bindings, e);
}

/* --- the commands, as a palette and as help */

static size_t palette_count(const struct view *view, const struct shown *shown)
{
	return command_count;
}

static void palette_item(const struct view *view, const struct shown *shown, size_t item,
			 struct text *name, struct text *help)
{
	text_add_string(name, commands[item].name);
	text_add_format(help, "%s (", commands[item].help);
	bindings_add_keys(help, &view->bindings, item);
	text_add_char(help, ')');
}

static void palette_choose(struct view *view, const struct shown *shown, size_t item)
{
	commands[item].run(view, shown, commands[item].by);
}

static const struct list_kind list_palette = {
	.title = "Commands",
	.hint = "Enter runs, letters search, Esc closes",
	.count = palette_count,
	.item = palette_item,
	.choose = palette_choose,
};

void command_palette(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_palette);
}

/* Notes that follow the commands. */
static const char *const notes[][2] = {
	{"not there", "kill, renice, strace: tsnap looks"},
	{"the band", "above the table: threads by state over the last minutes: #: ON, on a CPU;"},
	{"", "r: RQ, waits for a CPU; D: uninterruptible sleep; s: asleep, but working"},
	{"", "(part of a request); -: as many as there are CPUs; ^: the window"},
	{"times", "local, as in reports; CSV, JSON and names of recorded files have UTC"},
	{"history", "the last ten minutes, then one scan a second for two hours; at most 64 MB"},
	{"files", "~/.config/tsnap and /etc/tsnap: views, and keys (COMMAND = KEY ...)"},
};
#define NOTE_COUNT (sizeof(notes) / sizeof(notes[0]))

static size_t help_count(const struct view *view, const struct shown *shown)
{
	return command_count + NOTE_COUNT;
}

static void help_item(const struct view *view, const struct shown *shown, size_t item,
		      struct text *name, struct text *help)
{
	if (item < command_count) {
		bindings_add_keys(name, &view->bindings, item);
		text_add_format(help, "%s (:%s)", commands[item].help, commands[item].name);
		return;
	}
	text_add_string(name, notes[item - command_count][0]);
	text_add_string(help, notes[item - command_count][1]);
}

static const struct list_kind list_help = {
	.title = "Help",
	.hint = "letters search, Esc or Enter closes",
	.count = help_count,
	.item = help_item,
};

void command_help(struct view *view, const struct shown *shown, int64_t by)
{
	list_open(view, &list_help);
}

/* --- what is left to the owner of the view */

void command_redraw(struct view *view, const struct shown *shown, int64_t by)
{
	view->request = REQUEST_REDRAW;
}

void command_stop(struct view *view, const struct shown *shown, int64_t by)
{
	view->request = REQUEST_STOP;
}

void command_quit(struct view *view, const struct shown *shown, int64_t by)
{
	view->request = REQUEST_QUIT;
}
