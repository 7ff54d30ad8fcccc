/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run_script SCRIPT: does what the lines of a file say, and prints screens.
 * run_script SCRIPT ROWS COLUMNS COMMAND: on a screen of that size; prints errors only: a
 * line that expects something else, a command that no key has run, a screen that is not clean.
 * After each line the screen is drawn in other sizes, too, and no file is written.
 *
 *   replay FILE              the recording, first of all; columns, filter and all may be before it
 *   size ROWS COLUMNS        of the screen from then on
 *   ascii                    no other characters from then on
 *   keys NAME NAME ...       keys by their names (screen/key.h)
 *   type WORDS               the words' characters as keys
 *   click ROW COLUMN         the mouse there, from 0; wheel -1 or 1: its wheel
 *   screen                   prints the screen
 *   expect WORDS             the screen has these words; absent WORDS: it has not
 *   asks NAME                the last key requested: quit, stop, redraw, write
 *   commands                 prints the names of all commands
 *   command                  prints the command line of the view
 *   same                     prints it, and the table as CSV: run_screens.py compares the two
 *   file NAME                prints that file, and removes it
 *   folded NAME              prints the command line and that file of folded stacks, and removes it
 */
#include "script.h"
#include "render/renderer.h"
#include "screen/command.h"
#include "screen/view_event.h"
#include "screen/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* State of a call with ROWS, COLUMNS and COMMAND. */
static struct {
	const char *command; /* command of the call; NULL: a call with SCRIPT only */
	size_t rows, columns;
	bool ran, failed;
} facts;

static void fact_fail(struct stage *stage, const char *what, const char *words)
{
	struct text text = {0};

	facts.failed = true;
	cells_text(&stage->cells, &text);
	printf("--- %s %s\n%s", what, words, text_string(&text));
	text_done(&text);
}

static void drawn_check(struct stage *stage)
{
	stage_draw(stage);
	if (!cells_are_clean(&stage->cells))
		fact_fail(stage, "not clean:", facts.command);
}

/* Draws the screen in other sizes, and again in its own. */
static void sizes_check(struct stage *stage)
{
	static const size_t sizes[][2] = {{14, 60},  {15, 59}, {15, 60}, {24, 80},
					  {60, 200}, {17, 61}, {5, 7},	 {500, 1000}};

	for (size_t i = 0; facts.command && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		stage->rows = sizes[i][0];
		stage->columns = sizes[i][1];
		drawn_check(stage);
	}
	stage->rows = facts.command ? facts.rows : stage->rows;
	stage->columns = facts.command ? facts.columns : stage->columns;
	stage_draw(stage);
}

/* Notes whether the key runs the command of the call. */
static void command_note(const struct view *view, int32_t key)
{
	size_t command = bindings_command(&view->bindings, key);

	if (facts.command && !view->prompt.kind && !view->list.kind && command < command_count)
		facts.ran |= !strcmp(commands[command].name, facts.command);
}

static void words_check(struct stage *stage, const char *words, bool wanted)
{
	struct text text = {0};

	drawn_check(stage);
	cells_text(&stage->cells, &text);
	if (!strstr(text_string(&text), words) == wanted)
		fact_fail(stage, wanted ? "expected:" : "not expected:", words);
	text_done(&text);
}

static void request_check(struct stage *stage, const char *name)
{
	static const char *const names[] = {
		[REQUEST_QUIT] = "quit",
		[REQUEST_STOP] = "stop",
		[REQUEST_REDRAW] = "redraw",
		[REQUEST_WRITE] = "write",
	};
	size_t asked = stage->asked;

	if (asked >= sizeof(names) / sizeof(names[0]) || !names[asked] ||
	    strcmp(names[asked], name) != 0)
		fact_fail(stage, "not asked for:", name);
	stage->asked = REQUEST_NONE;
}

static void keys_give(struct stage *stage, const char *names)
{
	while (*names) {
		size_t length = strcspn(names, " ");
		int32_t key = key_of_name(names, length);

		if (key < 0) {
			fprintf(stderr, "no such key: %s\n", names);
			exit(1);
		}
		command_note(stage->view, key);
		if (!stage_key(stage, key) && !facts.command)
			printf("--- the end was requested\n");
		/* the amount that can be scrolled depends on what was drawn */
		stage_draw(stage);
		names += length + (names[length] == ' ');
	}
}

static void words_type(struct stage *stage, const char *words)
{
	for (; *words; words++)
		stage_key(stage, (unsigned char)*words);
}

static void text_print(struct text *text)
{
	fputs(text_string(text), stdout);
	text_done(text);
}

static void screen_print(struct stage *stage)
{
	struct text text = {0};

	stage_draw(stage);
	cells_text(&stage->cells, &text);
	printf("--- %zux%zu\n", stage->columns, stage->rows);
	text_print(&text);
}

static void command_print(const struct stage *stage)
{
	struct text text = {0};

	command_line_add(&text, stage->view, &stage->shown);
	text_add_char(&text, '\n');
	text_print(&text);
}

static void commands_print(void)
{
	for (size_t i = 0; i < command_count; i++)
		puts(commands[i].name);
}

static void table_print(const struct stage *stage)
{
	const struct renderer *csv = &renderer_csv;
	struct text text = {0};

	csv->begin(&text, &stage->shown.list);
	csv->add(&text, &(struct interval){.grid = &stage->shown.grid});
	text_print(&text);
}

static void file_print(char *name)
{
	FILE *file = fopen(name, "r");
	int c;

	if (!file) {
		printf("--- no file %s\n", name);
		return;
	}
	printf("--- %s\n", name);
	while ((c = getc(file)) != EOF)
		putchar(c);
	fclose(file);
	unlink(name);
	/* removes its directories, too, if they are this test's */
	for (char *slash; (slash = strrchr(name, '/')) && !strncmp(name, "screen-test", 11);) {
		*slash = '\0';
		rmdir(name);
	}
}

static void line_do(struct stage *stage, const char *word, char *rest)
{
	struct mouse mouse = {0};

	if (!strcmp(word, "size")) {
		if (sscanf(rest, "%zu %zu", &stage->rows, &stage->columns) != 2)
			exit(1);
	} else if (!strcmp(word, "ascii")) {
		stage->cells.ascii = true;
	} else if (!strcmp(word, "keys")) {
		keys_give(stage, rest);
		sizes_check(stage);
	} else if (!strcmp(word, "type")) {
		words_type(stage, rest);
		sizes_check(stage);
	} else if (!strcmp(word, "expect")) {
		words_check(stage, rest, true);
	} else if (!strcmp(word, "absent")) {
		words_check(stage, rest, false);
	} else if (!strcmp(word, "asks")) {
		request_check(stage, rest);
	} else if (!strcmp(word, "click")) {
		if (sscanf(rest, "%zu %zu", &mouse.row, &mouse.column) != 2)
			exit(1);
		stage_mouse(stage, &mouse);
	} else if (!strcmp(word, "wheel")) {
		mouse.wheel = (int)strtol(rest, NULL, 10);
		stage_mouse(stage, &mouse);
	} else if (!strcmp(word, "screen")) {
		screen_print(stage);
	} else if (!strcmp(word, "commands")) {
		commands_print();
	} else if (!strcmp(word, "command")) {
		command_print(stage);
	} else if (!strcmp(word, "same")) {
		printf("--- same\n");
		command_print(stage);
		table_print(stage);
	} else if (!strcmp(word, "folded")) {
		printf("--- folded\n");
		command_print(stage);
		file_print(rest);
	} else if (!strcmp(word, "file")) {
		file_print(rest);
	} else {
		fprintf(stderr, "no such word: %s\n", word);
		exit(1);
	}
}

/* Opens the recording, on a screen of the requested size. */
static void replay(struct stage *stage, const char *recording, const struct query *query)
{
	stage_open(stage, recording, query);
	if (!facts.command)
		return;
	stage->quiet = true;
	stage->rows = facts.rows;
	stage->columns = facts.columns;
	stage_draw(stage);
}

static void facts_begin(char **argv)
{
	facts.rows = strtoul(argv[2], NULL, 10);
	facts.columns = strtoul(argv[3], NULL, 10);
	facts.command = argv[4];
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 || argc == 5 ? fopen(argv[1], "r") : NULL;
	struct query query = {.recorded = true};
	char *columns = NULL, *filter = NULL, *recording = NULL;
	struct stage stage = {0};
	char line[1024];

	if (!file)
		return 2;
	if (argc == 5)
		facts_begin(argv);
	while (fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, " \n");
		char *rest = line + length + (line[length] == ' ');

		line[strcspn(line, "\n")] = '\0';
		line[length] = '\0';
		if (!*line || *line == '#')
			continue;
		if (!strcmp(line, "columns"))
			query.columns = columns = strdup(rest);
		else if (!strcmp(line, "filter"))
			query.filter = filter = strdup(rest);
		else if (!strcmp(line, "all"))
			query.all_states = true;
		else if (!strcmp(line, "replay"))
			replay(&stage, recording = strdup(rest), &query);
		else
			line_do(&stage, line, rest);
	}
	fclose(file);
	if (facts.command && !facts.ran)
		printf("--- no key runs the command %s\n", facts.command);
	if (stage.history)
		stage_close(&stage);
	free(columns);
	free(filter);
	free(recording);
	return facts.failed;
}
