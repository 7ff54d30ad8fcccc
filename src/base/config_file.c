/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

char *config_trim(char *words)
{
	size_t length;

	words += strspn(words, BLANKS);
	length = strlen(words);
	while (length && strchr(BLANKS, words[length - 1]))
		words[--length] = '\0';
	return words;
}

int config_file_read(const char *path, config_line_callback *take, void *to, struct error *e)
{
	FILE *file = fopen(path, "re");
	struct error inner = {0};
	size_t capacity = 0, number = 0;
	char *line = NULL;
	int err = 0;

	if (!file)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	while (!err && getline(&line, &capacity, file) >= 0) {
		char *words = config_trim(line);

		number++;
		if (*words && *words != '#')
			err = take(to, words, &inner);
	}
	if (!err && ferror(file))
		err = error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
	else if (err)
		error_set(e, EINVAL, EXIT_USAGE, "%s: line %zu: %s", path, number, inner.line);
	error_done(&inner);
	free(line);
	fclose(file);
	return err;
}
