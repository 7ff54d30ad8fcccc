/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/kernel_event.h"
#include "base/host_file.h"
#include "kernel/bpf_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the number that perf knows the event by. */
static int id_read(const char *event, uint64_t *id)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	const char *name = strchr(event, ':') + 1;
	char path[256], text[32];

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/%.*s/%s/id", roots[i],
			 (int)(name - 1 - event), event, name);
		if (host_file_read(path, text, sizeof(text)) > 0) {
			*id = strtoull(text, NULL, 10);
			return 0;
		}
	}
	return -ENOENT;
}

bool tracepoint_exists(const char *event)
{
	uint64_t id;

	return !id_read(event, &id);
}

int tracepoint_attach(const char *event, int program)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .sample_period = 1, .disabled = 1};
	uint64_t id;
	int result = id_read(event, &id), fd;

	if (result)
		return result;
	attr.config = id;
	/* the program runs on every CPU, whichever the event is of */
	fd = perf_call_open(&attr, -1, 0);
	if (fd < 0)
		return fd;
	result = perf_call_run(fd, program);
	if (result >= 0)
		return fd;
	close(fd);
	return result;
}

const char *tracepoint_why(int result)
{
	return result == -EEXIST ? "another program is attached to it, and before Linux 4.15 a "
				   "tracepoint takes only one"
				 : strerror(-result);
}

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
