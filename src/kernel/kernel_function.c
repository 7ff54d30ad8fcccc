/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/kernel_function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kernel_function_find(const char *name, char *found, unsigned int size)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t length = strlen(name);
	char *line = NULL, *symbol;
	size_t capacity = 0;
	int result = -ENOENT;

	while (file && getline(&line, &capacity, file) > 0) {
		/* "ffffffff810b2a30 t finish_task_switch.isra.0" and, in modules, "\t[name]" */
		symbol = strchr(line, ' ');
		if (!symbol || !strchr("tTwW", symbol[1]) || !symbol[1])
			continue;
		symbol += 3;
		symbol[strcspn(symbol, "\t\n ")] = 0;
		if (strncmp(symbol, name, length) || (symbol[length] && symbol[length] != '.') ||
		    strstr(symbol + length, ".cold"))
			continue;
		result = 0;
		snprintf(found, size, "%s", symbol);
		if (!symbol[length])
			break; /* the plain name is the best */
	}
	free(line);
	if (file)
		fclose(file);
	return result;
}
