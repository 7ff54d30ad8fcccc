/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/kernel_stack.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

bool function_listed(const char *patterns, const char *name)
{
	char pattern[FUNCTION_SIZE];

	while (patterns && *patterns) {
		size_t length = strcspn(patterns, " ");

		/* fnmatch() is slow */
		if (*patterns == *name || *patterns == '*') {
			snprintf(pattern, sizeof(pattern), "%.*s", (int)length, patterns);
			if (!fnmatch(pattern, name, 0))
				return true;
		}
		patterns += length + (patterns[length] == ' ');
	}
	return false;
}

bool function_next(const char **stack, char name[FUNCTION_SIZE])
{
	const char *at = strstr(*stack, "] ");
	size_t length;

	if (!at)
		return false;
	at += 2;
	length = strcspn(at, "+\n");
	snprintf(name, FUNCTION_SIZE, "%.*s", (int)length, at);
	*stack = at + length;
	return true;
}

bool stack_has(const char *stack, const char *patterns)
{
	char name[FUNCTION_SIZE];

	while (function_next(&stack, name))
		if (function_listed(patterns, name))
			return true;
	return false;
}
