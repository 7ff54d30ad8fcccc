/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of container runtimes: strings are bounded, and each is reported with a key at a depth. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc/containers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void string_meet(void *to, int depth, const char *key, const char *string)
{
	size_t *count = to;

	must(depth >= 0 && depth < JSON_DEPTH_MAX);
	must(strnlen(key, JSON_STRING_SIZE) < JSON_STRING_SIZE);
	must(strnlen(string, JSON_STRING_SIZE) < JSON_STRING_SIZE);
	++*count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* a copy of the exact size, so that a read beyond the end is found */
	char *text = malloc(size ? size : 1);
	size_t count = 0;

	must(text);
	if (size)
		memcpy(text, data, size);
	json_strings_visit(text, size, string_meet, &count);
	must(count <= size);
	free(text);
	return 0;
}
