/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/bindings.h"
#include "screen/key.h"

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
