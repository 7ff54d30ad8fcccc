/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void error_done(struct error *e)
{
	free(e->detail);
	*e = (struct error){0};
}
