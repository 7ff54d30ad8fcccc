/* SPDX-License-Identifier: GPL-2.0-or-later */
/* header_offsets TREE RELEASE FILE: compiles the kernel headers in TREE, those of the kernel
 * RELEASE, and writes FILE, as tsnap --kernel-types headers --write-offsets does on that kernel. In
 * an emulated machine that takes a minute. The layout is not validated: tsnap --offsets does that.
 */
#include "base/text.h"
#include "kernel/bcc_library.h"
#include "kernel/field_table.h"
#include "kernel/host.h"
#include "kernel/type_source.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int offsets_make(const struct host *host, const char *tree, const char *release,
			struct text *text, struct error *e)
{
	struct bcc_library bcc;
	struct field_layout layout = {.sets = FIELDS_ALL};
	/* header_layout_read() reads the compiler's words here */
	const struct type_request request = {.bcc = &bcc, .output = memfd_create("output", 0)};
	int console = dup(STDERR_FILENO), result = bcc_library_open(&bcc, e);

	dup2(request.output, STDERR_FILENO);
	if (!result)
		result = header_layout_read(&request, tree, &layout, e);
	dup2(console, STDERR_FILENO);
	if (!result)
		field_offsets_write(&layout, release, host->machine, text);
	return result;
}

int main(int argc, char **argv)
{
	struct error e = {0};
	struct text text = {0};
	struct host host;
	FILE *file;

	if (argc != 4) {
		fprintf(stderr, "usage: header_offsets TREE RELEASE FILE\n");
		return 2;
	}
	host_read(&host);
	if (offsets_make(&host, argv[1], argv[2], &text, &e)) {
		fprintf(stderr, "FAILED: %s\n", e.line);
		return 1;
	}
	file = fopen(argv[3], "we");
	if (!file || fputs(text_string(&text), file) < 0 || fclose(file)) {
		perror(argv[3]);
		return 1;
	}
	/* no destructors: those of LLVM have freed twice after a failed compile (0.26) */
	_exit(0);
}
