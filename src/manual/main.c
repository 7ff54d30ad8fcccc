/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Program with two uses: page PROSE OPTIONS FILE writes a manual page, completion SHELL FILE a
 * completion script. */
#include "manual/manual.h"
#include "base/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct text out = {0};
	struct error e = {0};
	enum exit_code code;
	int err;

	if (argc == 5 && !strcmp(argv[1], "page"))
		err = manual_page_add(&out, argv[2], argv[3], &e);
	else if (argc == 4 && !strcmp(argv[1], "completion"))
		err = completion_add(&out, argv[2], &e);
	else
		err = error_set(&e, EINVAL, EXIT_USAGE,
				"usage: %s page PROSE OPTIONS FILE | completion SHELL FILE",
				argv[0]);
	/* writes the file whole or not at all: make takes an existing file for finished */
	if (!err && (err = output_replace(argv[argc - 1], text_string(&out), out.length)))
		error_set(&e, -err, EXIT_FAILED, "%s can't be written: %s", argv[argc - 1],
			  strerror(-err));
	code = error_end(&e, err);
	if (code)
		fprintf(stderr, "%s\n", e.line);
	error_done(&e);
	text_done(&out);
	return (int)code;
}
