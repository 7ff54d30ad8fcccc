/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run_script SCRIPT: does what the lines of a file say, and prints screens.
 *
 *   replay FILE              the recording, first of all; columns, filter and all may be before it
 *   size ROWS COLUMNS        of the screen from then on
 *   ascii                    no other characters from then on
 *   keys NAME NAME ...       keys by their names (screen/key.h)
 *   type WORDS               the words' characters as keys
 *   click ROW COLUMN         the mouse there, from 0; wheel -1 or 1: its wheel
 *   screen                   prints the screen
 *   commands                 prints the keys of all commands: run_screens.py wants each in a script
 *   command                  prints the command line of the view
 *   same                     prints it, and the table as CSV: run_screens.py compares the two
 *   file NAME                prints that file, and removes it
 *   folded NAME              prints the command line and that file of folded stacks, and removes it
 */
#include "script.h"
#include "render/renderer.h"
#include "screen/command.h"
#include "screen/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void keys_give(struct stage *stage, const char *names)
{
	while (*names) {
		size_t length = strcspn(names, " ");
		int32_t key = key_of_name(names, length);

		if (key < 0) {
			fprintf(stderr, "no such key: %s\n", names);
			exit(1);
		}
		if (!stage_key(stage, key))
			printf("--- the end was asked for\n");
		/* what is scrolled depends on what was drawn */
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

static void commands_print(const struct stage *stage)
{
	struct text text = {0};

	text_add_string(&text, "--- commands\n");
	for (size_t i = 0; i < command_count; i++) {
		text_add_format(&text, "%s: ", commands[i].name);
		bindings_add_keys(&text, &stage->view->bindings, i);
		text_add_char(&text, '\n');
	}
	text_print(&text);
}

static void table_print(const struct stage *stage)
{
	const struct renderer *csv = renderer_find("csv");
	struct text text = {0};

	csv->begin(&text, &stage->shown.list);
	csv->add(&text, &(struct page){.grid = &stage->shown.grid});
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
	/* and its directories, if they are this test's */
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
	} else if (!strcmp(word, "type")) {
		words_type(stage, rest);
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
		commands_print(stage);
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

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
	struct query query = {.recorded = true};
	char *columns = NULL, *filter = NULL, *recording = NULL;
	struct stage stage = {0};
	char line[1024];

	if (!file)
		return 2;
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
			stage_open(&stage, recording = strdup(rest), &query);
		else
			line_do(&stage, line, rest);
	}
	fclose(file);
	if (stage.history)
		stage_close(&stage);
	free(columns);
	free(filter);
	free(recording);
	return 0;
}
