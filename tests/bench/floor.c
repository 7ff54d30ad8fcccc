/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Empty programs on raw tracepoints: the cost of a call of a program, apart from what the program
 * does.
 *
 * floor EVENT...: attaches, prints "ready", runs until standard input ends; then, if the kernel
 * counted meanwhile, prints "EVENT: N ns a run". clock:EVENT: a program that only reads the clock,
 * as all must that measure a time. Exit status 77: this kernel has no raw tracepoints, or does not
 * permit them.
 */
#include "kernel/bpf_call.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLOCK "clock:"
#define EVENTS_MAX 16

static int event_attach(const char *event)
{
	const struct bpf_insn program[] = {BPF_CALL_(BPF_FUNC_ktime_get_ns), BPF_SET_(BPF_REG_0, 0),
					   BPF_EXIT_()};
	bool clock = !strncmp(event, CLOCK, strlen(CLOCK));
	int result, fd = bpf_call_load(BPF_PROG_TYPE_RAW_TRACEPOINT, program + !clock,
				       sizeof(program) / sizeof(program[0]) - !clock);

	if (fd < 0)
		return fd;
	result = bpf_call_raw_tracepoint(fd, event + (clock ? strlen(CLOCK) : 0));
	return result < 0 ? result : fd;
}

/* Prints the program's counts from fdinfo (sysctl kernel.bpf_stats_enabled, 5.1). */
static void run_tell(const char *event, int program)
{
	unsigned long long ns = 0, runs = 0;
	char line[128];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", program);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "run_time_ns: %llu", &ns);
		sscanf(line, "run_cnt: %llu", &runs);
	}
	if (file)
		fclose(file);
	if (runs)
		printf("%s: %llu ns a run\n", event, ns / runs);
}

int main(int argc, char **argv)
{
	int programs[EVENTS_MAX];
	char byte;

	if (argc < 2 || argc > EVENTS_MAX) {
		fprintf(stderr, "usage: floor EVENT...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		int program = event_attach(argv[i]);

		if (program < 0) {
			fprintf(stderr, "floor: %s: %s\n", argv[i], strerror(-program));
			return program == -EINVAL || program == -EPERM ? 77 : 1;
		}
		programs[i] = program;
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (int i = 1; i < argc; i++)
		run_tell(argv[i], programs[i]);
	return 0;
}
