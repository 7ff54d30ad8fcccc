/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/key.h"

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
