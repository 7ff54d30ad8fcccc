/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/run.h"
#include "base/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_file(const char *file)
{
	return file && strcmp(file, "-") != 0;
}

static int output_fail(const char *file, int err, struct error *e)
{
	return error_set(e, -err, EXIT_FAILED, "%s: %s", file, output_error(err));
}

int run_output_check(const char *file, struct error *e)
{
	int err = is_file(file) ? output_replace_check(file) : 0;

	return err ? output_fail(file, err, e) : 0;
}

int run_output(const char *file, const struct text *out, struct error *e)
{
	int err = is_file(file) ? output_replace(file, text_string(out), out->length)
				: output_write(STDOUT_FILENO, text_string(out), out->length);

	if (err && (err != -EPIPE || is_file(file)))
		output_fail(is_file(file) ? file : "standard output", err, e);
	return err;
}

void run_output_tell(const char *file, const char *what, void (*report)(const char *lines))
{
	struct text line = {0};

	if (!is_file(file))
		return;
	text_add_format(&line, "wrote %s, a %s\n", file, what);
	report(text_string(&line));
	text_done(&line);
}
