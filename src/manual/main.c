/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes to standard output: page PROSE OPTIONS, the manual page; or completion SHELL. */
#include "manual/manual.h"
#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct text out = {0};
	struct error e = {0};
	enum exit_code code;
	int err;

	if (argc == 4 && !strcmp(argv[1], "page"))
		err = manual_page_add(&out, argv[2], argv[3], &e);
	else if (argc == 3 && !strcmp(argv[1], "completion"))
		err = completion_add(&out, argv[2], &e);
	else
		err = error_set(&e, EINVAL, EXIT_USAGE,
				"usage: %s page PROSE OPTIONS | completion SHELL", argv[0]);
	if (!err)
		err = output_write(STDOUT_FILENO, text_string(&out), out.length);
	code = error_end(&e, err);
	if (code)
		fprintf(stderr, "%s\n", e.line);
	error_done(&e);
	text_done(&out);
	return (int)code;
}
