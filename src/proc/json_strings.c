/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/json_strings.h"

#include <stdbool.h>
#include <string.h>

struct level {
	bool object, value; /* value: a key and its colon came before */
	char key[JSON_STRING_SIZE];
};

/* Reads a string after its opening quote. Only escaped quotes and backslashes are unescaped: no
 * name of a container has other escapes. */
static const char *string_take(const char *at, const char *end, char string[JSON_STRING_SIZE])
{
	size_t length = 0;

	for (; at < end && *at != '"'; at++) {
		if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
			at++;
		if (length < JSON_STRING_SIZE - 1)
			string[length++] = *at;
	}
	string[length] = '\0';
	return at < end ? at + 1 : end;
}

static void level_open(struct level *levels, int depth, bool object)
{
	struct level *level = &levels[depth], *outer = &levels[depth - 1];

	level->object = object;
	level->value = false;
	/* an array takes the key of the object or array around it */
	if (object)
		level->key[0] = '\0';
	else
		memcpy(level->key, outer->key, sizeof(level->key));
}

void json_strings_visit(const char *text, size_t length, json_visit *visit, void *to)
{
	struct level levels[JSON_DEPTH_MAX] = {{.key = ""}};
	char string[JSON_STRING_SIZE] = "";
	const char *end = text + length;
	int depth = 0;

	while (text < end) {
		struct level *level = depth < JSON_DEPTH_MAX ? &levels[depth] : NULL;
		char c = *text++;

		if (c == '{' || c == '[') {
			if (++depth < JSON_DEPTH_MAX)
				level_open(levels, depth, c == '{');
		} else if (c == '}' || c == ']') {
			depth -= depth > 0;
		} else if (c == ',' && level) {
			level->value = false;
		} else if (c == ':' && level) {
			level->value = true;
		} else if (c == '"') {
			text = string_take(text, end, string);
			if (level && level->object && !level->value)
				memcpy(level->key, string, sizeof(level->key));
			else if (level)
				visit(to, depth, level->key, string);
		}
	}
}
