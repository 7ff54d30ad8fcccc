/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/key.h"
#include "screen/command.h"
#include "base/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct key_row {
	int32_t key;
	const char *name;
} key_rows[] = {
	{KEY_CODE_TAB, "Tab"},	    {KEY_CODE_ENTER, "Enter"},
	{KEY_CODE_ESCAPE, "Esc"},   {KEY_CODE_BACKSPACE, "Backspace"},
	{KEY_CODE_UP, "Up"},	    {KEY_CODE_DOWN, "Down"},
	{KEY_CODE_LEFT, "Left"},    {KEY_CODE_RIGHT, "Right"},
	{KEY_CODE_PAGE_UP, "PgUp"}, {KEY_CODE_PAGE_DOWN, "PgDn"},
	{KEY_CODE_HOME, "Home"},    {KEY_CODE_END, "End"},
	{KEY_CODE_DELETE, "Del"},   {' ', "Space"},
};
#define KEY_COUNT (sizeof(key_rows) / sizeof(key_rows[0]))

void key_add(struct text *text, int32_t key)
{
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (key_rows[i].key == key) {
			text_add_string(text, key_rows[i].name);
			return;
		}
	if (key >= KEY_CODE_F1 && key <= KEY_CODE_F12)
		text_add_format(text, "F%d", key - KEY_CODE_F1 + 1);
	else if (key > 0 && key <= 26)
		text_add_format(text, "Ctrl-%c", 'A' + key - 1);
	else if (key > ' ' && key < 127)
		text_add_char(text, (char)key);
}

int32_t key_of_name(const char *name, size_t length)
{
	char function[16];

	if (length == 1)
		return (unsigned char)*name;
	for (size_t i = 0; i < KEY_COUNT; i++)
		if (strlen(key_rows[i].name) == length && !strncmp(key_rows[i].name, name, length))
			return key_rows[i].key;
	if (length == 6 && !strncmp(name, "Ctrl-", 5) && name[5] >= 'A' && name[5] <= 'Z')
		return name[5] - 'A' + 1;
	for (int32_t key = KEY_CODE_F1; key <= KEY_CODE_F12; key++) {
		snprintf(function, sizeof(function), "F%d", key - KEY_CODE_F1 + 1);
		if (strlen(function) == length && !strncmp(function, name, length))
			return key;
	}
	return -1;
}

size_t bindings_command(const struct bindings *bindings, int32_t key)
{
	for (size_t command = 0; key && command < BINDINGS_MAX; command++)
		for (size_t i = 0; i < BINDING_KEYS_MAX; i++)
			if (bindings->keys[command][i] == key)
				return command;
	return SIZE_MAX;
}

void bindings_add_keys(struct text *text, const struct bindings *bindings, size_t command)
{
	const int32_t *keys = bindings->keys[command];

	if (!keys[0])
		text_add_char(text, '-');
	for (size_t i = 0; i < BINDING_KEYS_MAX && keys[i]; i++) {
		text_add_string(text, i ? " " : "");
		key_add(text, keys[i]);
	}
}

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

static int line_take(void *to, char *line, struct error *e)
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
	return config_file_read(path, line_take, bindings, e);
}
