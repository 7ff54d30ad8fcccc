/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Empty programs on raw tracepoints: what being called costs, whatever the program does.
 *
 * floor EVENT...: attaches, prints "ready", stays until standard input ends. Exit status 77: this
 * kernel has no raw tracepoints, or not for us.
 */
#include "kernel/bpf_call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int event_attach(const char *event)
{
	const struct bpf_insn nothing[] = {BPF_SET_(BPF_REG_0, 0), BPF_EXIT_()};
	int program = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, nothing,
				    sizeof(nothing) / sizeof(nothing[0]));

	return program < 0 ? program : bpf_call_raw_tracepoint(program, event);
}

int main(int argc, char **argv)
{
	char byte;

	if (argc < 2) {
		fprintf(stderr, "usage: floor EVENT...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		int result = event_attach(argv[i]);

		if (result < 0) {
			fprintf(stderr, "floor: %s: %s\n", argv[i], strerror(-result));
			return result == -EINVAL || result == -EPERM ? 77 : 1;
		}
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
