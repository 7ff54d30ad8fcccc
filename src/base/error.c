/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERRNO_MAX 133 /* EHWPOISON, the last one of Linux */

int error_set(struct error *e, int err, enum exit_code code, const char *format, ...)
{
	char line[ERROR_LINE_SIZE];
	va_list args;

	/* the line is built aside, because an argument may be the old line */
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	error_done(e);
	e->exit_code = code;
	for (size_t i = 0; i < sizeof(line); i++) {
		e->line[i] = line[i] == '\n' ? ' ' : line[i];
		if (!line[i])
			break;
	}
	return err > 0 ? -err : -EIO;
}

void error_take_detail(struct error *e, char *detail)
{
	free(e->detail);
	e->detail = detail;
}

void error_add(struct error *e, const char *words)
{
	size_t length = strlen(e->line);

	snprintf(e->line + length, sizeof(e->line) - length, "%s", words);
}

enum exit_code error_end(struct error *e, int result)
{
	if (!result)
		return EXIT_DONE;
	if (!e->line[0])
		error_set(e, 0, EXIT_FAILED, "something failed without saying what: %s",
			  strerror(result < 0 ? -result : result));
	return e->exit_code ? e->exit_code : EXIT_FAILED;
}

int error_of_words(const char *words)
{
	for (int err = 1; err <= ERRNO_MAX; err++)
		if (strstr(words, strerror(err)))
			return err;
	return 0;
}

int error_of_output(const char *output, char *line, size_t size)
{
	int found = 0;
	size_t length;

	*line = '\0';
	for (const char *at = output; *at; at += length + !!at[length]) {
		char words[ERROR_LINE_SIZE];
		int err;

		length = strcspn(at, "\n");
		snprintf(words, sizeof(words), "%.*s", (int)length, at);
		err = error_of_words(words);
		if (!err && (*line || !strstr(words, "error")))
			continue;
		found = err;
		snprintf(line, size, "%s", words);
	}
	return found;
}

void error_done(struct error *e)
{
	free(e->detail);
	*e = (struct error){0};
}
