/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/key_file.h"
#include "screen/command.h"
#include "base/config_file.h"
#include "screen/key.h"

#include <errno.h>
#include <string.h>

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
